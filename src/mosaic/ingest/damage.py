"""What errors mean for a run's file: retry, refuse the request, or give the file up."""

import sqlite3
from pathlib import Path

from mosaic.model.errors import MosaicError, StoreDamaged, StoreFailed, StoreUnavailable

_TEMPORARY = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,  # only another program's connection can cause these two
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
}


def to_mosaic_error(error: Exception, path: Path) -> MosaicError:
    """The error to raise in its place. Any error: the thread that has it serves other runs too."""
    if isinstance(error, OSError):  # a directory in place of the file, no descriptor left
        return StoreUnavailable(f"{path} cannot be used now: {error}. MOSAIC retries automatically.")
    if isinstance(error, (sqlite3.ProgrammingError, sqlite3.InterfaceError)) or not isinstance(error, sqlite3.Error):
        return unexpected(path, error)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(f"disk full: {path} cannot grow. Free some space; MOSAIC then continues automatically.")
    if code in _TEMPORARY:
        return StoreUnavailable(f"{path} cannot be used now ({error}). MOSAIC retries automatically.")
    return damaged(path, error)


def damaged(path: Path, why: "Exception | str") -> StoreDamaged:
    """The error for a file that is not a database, has torn pages, or has tables that another program changed."""
    return StoreDamaged(f"{path} is damaged ({why}). Keep a copy of the run's folder and delete the run.")


def unexpected(path: Path, error: Exception) -> StoreFailed:
    """The error for a value in the file that MOSAIC never writes, or for a bug."""
    what = f"{type(error).__name__}: {error}"
    return StoreFailed(f"{path} cannot be read or written ({what}). It may be damaged; the daemon's log has more.")
