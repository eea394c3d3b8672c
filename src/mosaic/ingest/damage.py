"""What SQLite's errors mean for a run's file: retry, give the file up, or a bug in MOSAIC."""

import sqlite3
from pathlib import Path

from mosaic.model.errors import MosaicError, StoreFailed, StoreUnavailable

_TEMPORARY = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,  # only another program's connection can cause these two
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
}


def to_mosaic_error(error: sqlite3.Error, path: Path) -> "MosaicError | None":
    """The error to raise in its place; None for a bug in MOSAIC."""
    if isinstance(error, (sqlite3.ProgrammingError, sqlite3.InterfaceError)):
        return None
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(f"disk full: {path} cannot grow. Free some space; MOSAIC then continues automatically.")
    if code in _TEMPORARY:
        return StoreUnavailable(f"{path} cannot be used now ({error}). MOSAIC retries automatically.")
    return damaged(path, error)


def damaged(path: Path, why: Exception) -> StoreFailed:
    """The error for a file that is not a database, has torn pages, or has tables that another program changed."""
    return StoreFailed(f"{path} is damaged ({why}). Keep a copy of the run's folder and delete the run.")
