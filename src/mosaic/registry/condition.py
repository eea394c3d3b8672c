"""Whether `registry.db` can be trusted, and if not, why: looked at before it is opened for writing."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

from mosaic.model.errors import SchemaTooNew
from mosaic.registry.file import STEPS
from mosaic.registry.records import Records

TABLES = frozenset({"runs", "history", "gpus", "drained", "deleted", "clock"})
SINCE_6 = frozenset({"experiments"})
_ODD_ID = "typeof(id) <> 'text' OR id = '' OR id GLOB '*[^0-9A-Za-z]*'"


def problem_of(path: Path, has_traces: bool) -> str:
    """Why the registry must be rebuilt; empty when it is fine, or new. `has_traces`: this root has had runs.

    Raises OSError or sqlite3.OperationalError if that cannot be found out now, and SchemaTooNew.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return "it is missing" if has_traces else ""
    if not stat.S_ISREG(found.st_mode):
        return "it is not a regular file"
    if found.st_size == 0:
        return "it is empty" if has_traces else ""
    try:
        return problem_inside(path) or _problem_with_age(path)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and not _is_damage(error):
            raise
        return f"it is damaged: {error}"


def problem_inside(path: Path) -> str:
    """What is wrong with the pages and tables of an SQLite file. Raises sqlite3.DatabaseError for some damages."""
    with closing(_open(path)) as db:
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version > len(STEPS):
            raise SchemaTooNew(path, version, len(STEPS))
        # The indexes too: a run that only an index has lost would be missing in some listings.
        verdict = str(db.execute("PRAGMA integrity_check(1)").fetchone()[0])
        # Not NULL: such rows are shown with their problem, and do not condemn the file.
        if verdict != "ok" and not verdict.startswith("NULL value in"):
            return f"it is damaged: {verdict.splitlines()[-1]}"
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if version and (lost := (TABLES | SINCE_6 if version >= 6 else TABLES) - tables):
            return f"it has no table {', '.join(sorted(lost))}"
        if not version and tables:
            return "it is the database of another program"
        if version and not isinstance(_clock(db), int):
            return "it has lost its revision"
        # A row without a usable id is shown nowhere: the run would be missing without a word.
        if version and db.execute(f"SELECT 1 FROM runs WHERE {_ODD_ID} LIMIT 1").fetchone():
            return "a run in it has lost its id"
    return ""


def revision_of(path: Path) -> int:
    """The revision in an intact file; -1 for any other."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode) or problem_inside(path):
            return -1
        with closing(_open(path)) as db:
            found = _clock(db)
    except (sqlite3.Error, OSError, SchemaTooNew):
        return -1
    return found if isinstance(found, int) else -1


def _problem_with_age(path: Path) -> str:
    recorded = Records(path.parent / "control").revision()
    with closing(_open(path)) as db:
        known = _clock(db) if int(db.execute("PRAGMA user_version").fetchone()[0]) else 0
    if known < recorded:
        lost = "its WAL may have been lost, or an old copy was put in its place"
        return f"it is older than the records of its runs (revision {known} of {recorded}): {lost}"
    return ""


def _open(path: Path) -> sqlite3.Connection:
    # Read-only: closing another connection would fold the WAL into a file that is perhaps damaged.
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0, isolation_level=None)


def _clock(db: sqlite3.Connection) -> int:
    row = db.execute("SELECT revision FROM clock").fetchone()
    return row[0] if row else -1


def _is_damage(error: sqlite3.OperationalError) -> bool:
    """Damage that SQLite reports as an operational error, such as a malformed schema."""
    kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return kind in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
