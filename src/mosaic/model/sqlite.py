"""Opening SQLite files: the only place that does. Callers keep their schema, as a sequence of SQL steps.

Step n (from 0) leads from schema version n to n + 1; the version is SQLite's `user_version`.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from mosaic.model import durable
from mosaic.model.errors import SchemaTooNew

BUSY_S = 5.0  # how long a statement waits for the lock of another process

Synchronous = Literal["FULL", "NORMAL", "OFF"]  # FULL: a commit is on the disk when it returns


def open_writable(
    path: Path,
    synchronous: Synchronous,
    newest: int | None = None,
    check_pages: bool = False,
    exclusive: bool = False,
    wait_s: float | None = None,
) -> sqlite3.Connection:
    """A connection in WAL mode, in autocommit; a new file gets mode 0600.

    `newest` is the highest schema version that the caller knows: a newer file raises SchemaTooNew and is not touched.
    `check_pages` reads the whole file; a damaged one raises sqlite3.DatabaseError and is not touched either.
    `exclusive` locks the file while it is open, and there is no -shm: SQLite maps that file, so a process that
    truncates it would end this one by SIGBUS. `wait_s` limits the wait for a lock of another process.
    """
    create(path)
    db = sqlite3.connect(path, timeout=BUSY_S if wait_s is None else wait_s, isolation_level=None)
    with closed_on_error(db):
        if exclusive:  # before the file is first read: later SQLite would already have mapped the -shm
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA mmap_size = 0")
        _refuse_newer(db, path, newest)
        if check_pages:
            _check_pages(db)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {synchronous}")
    return db


def open_read_only(path: Path, newest: int | None = None) -> sqlite3.Connection:
    """A connection that changes nothing, to a file that is not in WAL mode (see `is_in_wal_mode`)."""
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_S, isolation_level=None)
    with closed_on_error(db):
        _refuse_newer(db, path, newest)
    return db


def open_in_memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


@contextmanager
def closed_on_error(db: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        db.close()
        raise


def version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def upgrade(db: sqlite3.Connection, steps: Sequence[str]) -> None:
    """Run the steps that this file has not had yet, each in its own transaction."""
    for number in range(version(db), len(steps)):
        _run_step(db, steps[number], number + 1)


def back_up(db: sqlite3.Connection, target: Path) -> None:
    """Copy the database to `target`, mode 0600."""
    # Renamed only when complete, so a file with the final name is always a whole copy.
    with durable.Replacement(target) as file:
        copy = sqlite3.connect(file.name)
        try:
            db.backup(copy)
        finally:
            copy.close()


def is_in_wal_mode(path: Path) -> bool:
    """Whether reading the file may need its -wal: it is in use, or a crash prevented a clean close."""
    # O_NONBLOCK: opening a FIFO would wait for a writer.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


def create(path: Path) -> None:
    """Create an empty file, unless there is one."""
    # SQLite would let the umask choose the mode; its -wal and -shm take the mode of this file. O_EXCL, because opening
    # and closing an existing file would release the locks that this process's other connections hold on it.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        pass


def _refuse_newer(db: sqlite3.Connection, path: Path, newest: int | None) -> None:
    found = version(db)
    if newest is not None and found > newest:
        raise SchemaTooNew(path, found, newest)


def _check_pages(db: sqlite3.Connection) -> None:
    verdict = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict.splitlines()[-1])  # the last line names the page


def _run_step(db: sqlite3.Connection, sql: str, number: int) -> None:
    try:
        # The version changes in the same transaction: a crash leaves the old file, never half a step.
        db.executescript(f"BEGIN IMMEDIATE;\n{sql}\n;PRAGMA user_version = {number};\nCOMMIT;")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
