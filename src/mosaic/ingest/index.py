"""The index over all runs: what a listing needs of those whose files are closed. The files are the truth."""

import logging
import sqlite3
from collections.abc import Collection
from pathlib import Path

import msgspec

from mosaic.model.run import RunSummary

log = logging.getLogger(__name__)

SCHEMA = 2  # of what a summary says; an index of another version is made anew from the runs' files

# NaN and Infinity are data, which JSON lacks and msgpack has.
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS runs (
  run_id         TEXT PRIMARY KEY,
  events         INTEGER NOT NULL,
  steps          INTEGER NOT NULL,
  episodes       INTEGER NOT NULL,
  last_step      INTEGER NOT NULL,
  last_event_at  REAL NOT NULL,
  failed_message TEXT NOT NULL,
  summary        BLOB NOT NULL     -- msgpack of model.run.RunSummary
) WITHOUT ROWID;
PRAGMA user_version = {SCHEMA};
"""
_PUT = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class Index:
    """One connection, used by one thread. A missing, damaged or newer index is made anew: it never stops anything."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None

    def put(self, run_id: str, summary: RunSummary) -> None:
        it = summary
        row = (run_id, it.events, it.steps, it.episodes, it.last_step, it.last_event_at, it.failed_message)
        self._write(_PUT, (*row, msgspec.msgpack.encode(summary)))

    def delete(self, run_id: str) -> None:
        self._write("DELETE FROM runs WHERE run_id = ?", (run_id,))

    def get(self, run_ids: Collection[str]) -> dict[str, RunSummary]:
        """The summaries it has of these runs."""
        try:
            rows = self._rows(run_ids)
            return {run_id: msgspec.msgpack.decode(blob, type=RunSummary) for run_id, blob in rows}
        except (sqlite3.Error, msgspec.DecodeError) as error:
            self._start_anew(error)
            return {}

    def close(self) -> None:
        if self._db:
            self._db.close()
        self._db = None

    def _write(self, statement: str, values: "tuple[object, ...]") -> None:
        try:
            self._open().execute(statement, values)
        except sqlite3.Error as error:
            self._start_anew(error)

    def _rows(self, run_ids: Collection[str]) -> list[tuple[str, bytes]]:
        db = self._open()
        if len(run_ids) > 500:  # a listing of all: one scan beats so many look-ups
            wanted = set(run_ids)
            return [row for row in db.execute("SELECT run_id, summary FROM runs") if row[0] in wanted]
        marks = ", ".join("?" * len(run_ids))
        return db.execute(f"SELECT run_id, summary FROM runs WHERE run_id IN ({marks})", tuple(run_ids)).fetchall()

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = sqlite3.connect(self._path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = OFF")  # it can be rebuilt
            if self._db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:
                self._db.executescript(f"DROP TABLE IF EXISTS runs; {_SCHEMA}")
        return self._db

    def _start_anew(self, error: Exception) -> None:
        """Throw a damaged file away; a full disk only costs this write."""
        log.warning("The index of runs failed and is rebuilt as needed: %s", error)
        self.close()
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF not in _PASSING:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self._path}{suffix}").unlink(missing_ok=True)


_PASSING = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_CANTOPEN,
}
