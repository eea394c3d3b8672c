"""Opening registry.db: made, checked, brought to today's version - or refused with a sentence."""

import os
import sqlite3
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from mosaic.model import durable
from mosaic.model.errors import BadRoot, SchemaTooNew

# Step n brings version n to n + 1. No step removes data, so that an older MOSAIC's rows always survive.
STEPS: tuple[str, ...] = tuple(
    resources.files("mosaic.registry").joinpath(name).read_text()
    for name in ("schema.sql", "schema-2.sql", "schema-3.sql", "schema-4.sql")
)


def open_file(path: Path, steps: Sequence[str] = STEPS) -> sqlite3.Connection:
    """A connection whose commits are on the disk when they return, to a file of version `len(steps)`."""
    try:
        return _open(path, steps)
    except (sqlite3.Error, OSError) as error:
        raise BadRoot(
            f"{path} cannot be used ({error}). Move it away and start again (run folders keep their telemetry), "
            f"put back a copy if there is one ({path.name}.backup-v*), or set MOSAIC_HOME elsewhere."
        ) from error


def _open(path: Path, steps: Sequence[str]) -> sqlite3.Connection:
    # Made here and not by SQLite, which would let the umask choose the mode; its WAL takes the mode of this file.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    try:
        _bring_up(db, path, steps)
    except BaseException:
        db.close()
        raise
    durable.sync_folder(str(path.parent))
    return db


def _bring_up(db: sqlite3.Connection, path: Path, steps: Sequence[str]) -> None:
    found = version(db)
    if found > len(steps):
        raise SchemaTooNew(path, found, len(steps))
    _check(db)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    if 0 < found < len(steps):
        _back_up(db, Path(f"{path}.backup-v{found}"))
    for number in range(found, len(steps)):
        _run_step(db, steps[number], number + 1)


def version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _check(db: sqlite3.Connection) -> None:
    verdict = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict.splitlines()[-1])  # one sentence: the last line names the page


def _back_up(db: sqlite3.Connection, target: Path) -> None:
    temp = Path(f"{target}.tmp")
    temp.unlink(missing_ok=True)
    os.close(os.open(temp, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    copy = sqlite3.connect(temp)
    try:
        db.backup(copy)
    finally:
        copy.close()
    # Renamed when whole: a file with the final name is a copy one can trust.
    os.replace(temp, target)
    durable.sync_folder(str(target.parent))


def _run_step(db: sqlite3.Connection, sql: str, number: int) -> None:
    try:
        # The version is part of the transaction: a crash here leaves the old file, never half a step.
        db.executescript(f"BEGIN IMMEDIATE;\n{sql}\n;PRAGMA user_version = {number};\nCOMMIT;")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
