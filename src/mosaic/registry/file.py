"""registry.db: its schema, and what a user reads when the file cannot be used."""

import sqlite3
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from mosaic.model import durable, sqlite
from mosaic.model.errors import BadRoot

# No step removes data, so the rows of an older MOSAIC always survive an upgrade.
STEPS: tuple[str, ...] = tuple(
    resources.files("mosaic.registry").joinpath(name).read_text()
    for name in ("schema.sql", "schema-2.sql", "schema-3.sql", "schema-4.sql")
)


def open_file(path: Path, steps: Sequence[str] = STEPS) -> sqlite3.Connection:
    """Open the file, upgraded to version `len(steps)`; every commit is on the disk when it returns."""
    try:
        db = sqlite.open_writable(path, synchronous="FULL", newest=len(steps), check_pages=True)
        with sqlite.closed_on_error(db):
            _upgrade(db, path, steps)
        durable.sync_folder(str(path.parent))
    except (sqlite3.Error, OSError) as error:
        raise BadRoot(
            f"{path} cannot be used ({error}). Restore a backup if there is one ({path.name}.backup-v*), move the file "
            "away and start again (run folders keep their telemetry), or set MOSAIC_HOME to another folder."
        ) from error
    return db


def _upgrade(db: sqlite3.Connection, path: Path, steps: Sequence[str]) -> None:
    db.execute("PRAGMA foreign_keys = ON")
    found = sqlite.version(db)
    if 0 < found < len(steps):
        sqlite.back_up(db, Path(f"{path}.backup-v{found}"))
    sqlite.upgrade(db, steps)
