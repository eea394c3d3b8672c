"""What SQLite's errors mean to a run: wait, give this file up, or a bug."""

import sqlite3
from pathlib import Path

from mosaic.model.errors import MosaicError, StoreFailed, StoreUnavailable

_FOR_NOW = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,  # only a stranger's connection can cause these two
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
}


def meaning(error: sqlite3.Error, path: Path) -> "MosaicError | None":
    """The error to raise in place of this one; None for a mistake of our own."""
    if isinstance(error, (sqlite3.ProgrammingError, sqlite3.InterfaceError)):
        return None
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(f"disk full: {path} cannot grow. Free some space; telemetry then goes on by itself.")
    if code in _FOR_NOW:
        return StoreUnavailable(f"{path} cannot be used now ({error}). It is tried again by itself.")
    return damaged(path, error)


def damaged(path: Path, why: Exception) -> StoreFailed:
    """Not a database, torn pages, or tables that a stranger changed: this run's file alone."""
    return StoreFailed(f"{path} is damaged ({why}). Copy the run's folder away and delete the run.")
