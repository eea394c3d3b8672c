"""A run's telemetry.sqlite: its schema, and whether it is opened for writing, for reading, or read as empty."""

import sqlite3
from importlib import resources
from pathlib import Path

from mosaic.ingest.held_files import HeldFiles, clear_the_way, refuse_linked_folder
from mosaic.model import sqlite
from mosaic.model.errors import StoreFailed

WAIT_S = 0.2  # for a lock of another program; meanwhile the other runs of this thread wait too

# A worker can put values of a gigabyte into its file. No row that MOSAIC writes is larger than a message.
LARGEST_VALUE = 128 << 20

# Every step only adds.
STEPS = [
    resources.files("mosaic.ingest").joinpath(name).read_text()
    for name in ("schema.sql", "schema-2.sql", "schema-3.sql")
]
# The file of a finished run is not upgraded. Temporary views make its older tables look like the current ones.
VIEWS = {
    1: "CREATE TEMP VIEW episodes AS SELECT *, NULL AS global_step FROM main.episodes",
    2: """CREATE TEMP VIEW rollups AS SELECT *, NULL AS ts_last FROM main.rollups;
          CREATE TEMP VIEW chunks AS SELECT *, NULL AS times FROM main.chunks""",
}


def hold(path: Path) -> HeldFiles:
    """The file that a connection for writing will open, which is created as needed.

    Looked at before SQLite opens it: otherwise a file that loses its name in between is never missed.
    """
    refuse_linked_folder(path)
    clear_the_way(path)
    sqlite.create(path)
    held = HeldFiles(path)
    held.loss()
    return held


def connect(path: Path, read_only: bool) -> sqlite3.Connection:
    """Open the file, upgrading it as needed; for writing after `hold`. read_only: a finished run's is not changed."""
    db = _connect(path, read_only)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
    return db


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    refuse_linked_folder(path)
    if not read_only:
        return _open_live(path)
    # SQLite would follow a link; a worker can plant one in its folder.
    if path.is_symlink():
        raise StoreFailed(f"{path} is a symbolic link; a run's telemetry must stay in its folder. Delete the link.")
    if not _has_data(path):
        return _open_empty()
    # After a crash the file can still be in WAL mode, and reading its -wal means writing.
    if not sqlite.is_in_wal_mode(path):
        return _open_finished(path)
    clear_the_way(path)
    return _open_live(path)


def _open_live(path: Path) -> sqlite3.Connection:
    db = sqlite.open_writable(path, synchronous="NORMAL", newest=len(STEPS), exclusive=True, wait_s=WAIT_S)
    with sqlite.closed_on_error(db):
        db.execute("PRAGMA wal_autocheckpoint = 0")  # RunStore.checkpoint does it, and then knows what is durable
        sqlite.upgrade(db, STEPS)
    return db


def _open_finished(path: Path) -> sqlite3.Connection:
    db = sqlite.open_read_only(path, newest=len(STEPS))
    with sqlite.closed_on_error(db):
        for version in range(sqlite.version(db), len(STEPS)):
            db.execute("PRAGMA temp_store = MEMORY")
            db.executescript(VIEWS.get(version, ""))
    return db


def _open_empty() -> sqlite3.Connection:
    """An empty database in memory, for a run that has stored nothing yet: no file is created."""
    db = sqlite.open_in_memory()
    sqlite.upgrade(db, STEPS)
    return db


def _has_data(path: Path) -> bool:
    # Of a regular file: reading a FIFO would wait forever.
    return path.is_file() and path.stat().st_size > 0
