"""registry.db: its schema, and what a user reads when the file cannot be used."""

import contextlib
import errno
import json
import os
import sqlite3
import stat
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from mosaic.model import durable, sqlite
from mosaic.model.errors import BadRoot
from mosaic.model.task import Task

# No step removes data, so the rows of an older MOSAIC always survive an upgrade.
STEPS: tuple[str, ...] = tuple(
    resources.files("mosaic.registry").joinpath(name).read_text()
    for name in (
        "schema.sql",
        "schema-2.sql",
        "schema-3.sql",
        "schema-4.sql",
        "schema-5.sql",
        "schema-6.sql",
        "schema-7.sql",
    )
)


def open_file(path: Path, steps: Sequence[str] = STEPS) -> sqlite3.Connection:
    """Open the file, upgraded to version `len(steps)`; every commit is on the disk when it returns."""
    try:
        _refuse_odd_log(Path(f"{path}-wal"))
        db = sqlite.open_writable(path, synchronous="FULL", newest=len(steps), check_pages=True)
        with sqlite.closed_on_error(db):
            _upgrade(db, path, steps)
        durable.sync_folder(str(path.parent))
    except (sqlite3.Error, OSError) as error:
        raise BadRoot(
            f"{path} cannot be used ({error}). Rebuild it from its backups and the records of its runs with: "
            "mosaic registry rebuild. Or set MOSAIC_HOME to another folder."
        ) from error
    return db


def fetch(db: sqlite3.Connection, sql: str, values: Sequence[object] = ()) -> list[Any]:
    """All rows. Text that is not UTF-8, from a damaged page, is shown with replacement characters."""
    try:
        return db.execute(sql, values).fetchall()
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
    db.text_factory = lambda data: data.decode(errors="replace")
    try:
        return db.execute(sql, values).fetchall()
    finally:
        db.text_factory = str


def _refuse_odd_log(path: Path) -> None:
    """SQLite opens a FIFO as an empty log, and then no change can be stored."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise OSError(errno.EINVAL, f"{path.name} is not a regular file")


def _upgrade(db: sqlite3.Connection, path: Path, steps: Sequence[str]) -> None:
    db.execute("PRAGMA foreign_keys = ON")
    _add_functions(db)
    found = sqlite.version(db)
    if 0 < found < len(steps):
        sqlite.back_up(db, Path(f"{path}.backup-v{found}"))
    sqlite.upgrade(db, steps)


def _add_functions(db: sqlite3.Connection) -> None:
    """The functions that step 5 calls: the rule for a new row, applied to the settings of an old one."""
    db.create_function("task_algo", 1, lambda settings: Task.of(_settings(settings)).algo)
    db.create_function("task_env_id", 1, lambda settings: Task.of(_settings(settings)).env_id)
    db.create_function("task_seed", 1, lambda settings: Task.of(_settings(settings)).seed)


def _settings(text: str) -> dict[str, Any]:
    # Python's own json, because SQLite's refuses the NaN and Infinity that a setting may contain.
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
