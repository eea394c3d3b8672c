"""A run's SQLite file: opening it the right way, and its schema."""

import sqlite3
from importlib import resources
from pathlib import Path

from mosaic.model.errors import SchemaTooNew, StoreFailed

SCHEMA = 2
BUSY_S = 5.0  # only a stranger's connection can be in the way

# MIGRATIONS[n] leads from schema n to n + 1, and only adds.
MIGRATIONS = [resources.files("mosaic.ingest").joinpath(name).read_text() for name in ("schema.sql", "schema-2.sql")]
# A finished run's file is not migrated, only read: for this connection the older tables look like today's.
DISGUISES = {1: "CREATE TEMP VIEW episodes AS SELECT *, NULL AS global_step FROM main.episodes"}


def connect(path: Path, read_only: bool) -> sqlite3.Connection:
    """Open the file, made or migrated when needed. read_only: a finished run's file is not touched."""
    # SQLite would follow a link and write elsewhere; a worker can plant one, its folder is its own.
    if path.is_symlink():
        raise StoreFailed(f"{path} is a link; a run's telemetry stays in its folder. Delete the link.")
    frozen = read_only and _exists(path) and not _is_in_wal_mode(path)
    if frozen:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_S, isolation_level=None)
    elif read_only and not _exists(path):
        db = sqlite3.connect(":memory:", isolation_level=None)  # nothing was stored yet: every answer is empty
    else:
        db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        _check_version(db, path)
        if frozen:
            _disguise(db)
        else:
            _prepare(db)
    except BaseException:
        db.close()
        raise
    return db


def _check_version(db: sqlite3.Connection, path: Path) -> None:
    found = db.execute("PRAGMA user_version").fetchone()[0]
    if found > SCHEMA:
        raise SchemaTooNew(path, found, SCHEMA)


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA wal_autocheckpoint = 0")  # RunStore.checkpoint does it, and then knows what is durable
    found = db.execute("PRAGMA user_version").fetchone()[0]
    for version in range(found, SCHEMA):
        db.executescript(f"BEGIN IMMEDIATE; {MIGRATIONS[version]}; PRAGMA user_version = {version + 1}; COMMIT;")


def _disguise(db: sqlite3.Connection) -> None:
    found = db.execute("PRAGMA user_version").fetchone()[0]
    for version in range(found, SCHEMA):
        db.execute("PRAGMA temp_store = MEMORY")
        db.executescript(DISGUISES.get(version, ""))


def _exists(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _is_in_wal_mode(path: Path) -> bool:
    """Not closed for good: a crash came between. Reading such a file needs its -wal."""
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"
