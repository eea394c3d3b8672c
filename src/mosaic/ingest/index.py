"""The index over all runs: what a listing shows of runs whose files are closed. It is derived from those files."""

import logging
import sqlite3
import stat
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from mosaic.ingest.figures import Figures, Metrics
from mosaic.ingest.tally import limited
from mosaic.model import sqlite
from mosaic.model.run import RunSummary

log = logging.getLogger(__name__)
T = TypeVar("T")

LARGE_BYTES = 16 << 10
MOST_LOOKUPS = 3000  # of a question about some of the runs
MOST_METRICS = 16  # whose values of all runs are kept in memory: about 1 MB each for 10,000 runs
WAIT_S = 0.5  # for a program that has the index open; the summaries come from the files of the runs then
SCHEMA = 2  # of the stored summaries; an index of another version is rebuilt from the files of the runs

# msgpack, because JSON has no NaN and Infinity, which are valid values.
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
    """One connection, used by one thread. A missing, damaged or newer index is rebuilt and never stops the daemon.

    What questions about all runs have read stays in memory: the next one is a second later, and about the same runs.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._figures: dict[str, Figures] = {}  # by run
        self._metrics: OrderedDict[str, dict[str, float | None]] = OrderedDict()  # by name and run

    def put(self, run_id: str, summary: RunSummary) -> None:
        self._forget(run_id)
        it = summary
        row = (run_id, it.events, it.steps, it.episodes, it.last_step, it.last_event_at, it.failed_message)
        self._write(_PUT, (*row, msgspec.msgpack.encode(summary)))

    def delete(self, run_id: str) -> None:
        self._forget(run_id)
        self._write("DELETE FROM runs WHERE run_id = ?", (run_id,))

    def get(self, run_ids: Collection[str]) -> dict[str, RunSummary]:
        """The stored summaries of these runs."""
        try:
            rows = self._rows(run_ids)
            return {run_id: _summary_in(blob) for run_id, blob in rows}
        except Exception as error:  # noqa: BLE001  # a damaged index can raise anything
            self._rebuild(error)
            return {}

    def figures(self, run_ids: Collection[str]) -> dict[str, Figures]:
        """The figures of those of these runs that have a stored summary."""
        decoder = msgspec.msgpack.Decoder(Figures)
        return self._kept(self._figures, run_ids, decoder.decode)

    def metric(self, run_ids: Collection[str], name: str) -> dict[str, float | None]:
        """The last value of a metric, of those of these runs that have a stored summary; None: they do not have it."""
        decoder = msgspec.msgpack.Decoder(Metrics)
        kept = self._metrics.setdefault(name, {})
        self._metrics.move_to_end(name)
        if len(self._metrics) > MOST_METRICS:
            self._metrics.popitem(last=False)
        return self._kept(kept, run_ids, lambda blob: decoder.decode(blob).last_values.get(name))

    def metric_names(self, run_ids: Collection[str]) -> dict[str, Collection[str]]:
        """The metrics of those of these runs that have a stored summary."""
        decoder = msgspec.msgpack.Decoder(Metrics)
        return self._kept({}, run_ids, lambda blob: decoder.decode(blob).last_values.keys())

    def _kept(self, kept: dict[str, T], run_ids: Collection[str], decode: Callable[[bytes], T]) -> dict[str, T]:
        """What is in `kept`, after it was completed from the stored summaries."""
        try:
            if missing := [run_id for run_id in run_ids if run_id not in kept]:
                kept.update((run_id, decode(blob)) for run_id, blob in self._some_rows(missing))
            return {run_id: kept[run_id] for run_id in run_ids if run_id in kept}
        except Exception as error:  # noqa: BLE001  # see `get`
            self._rebuild(error)
            return {}

    def _forget(self, run_id: str) -> None:
        self._figures.pop(run_id, None)
        for kept in self._metrics.values():
            kept.pop(run_id, None)

    def has_metric(self, name: str) -> bool:
        """Whether a stored summary has a last value of this name."""
        try:
            # A cheap test in SQLite finds the few candidates; the name may be part of a longer one.
            rows = self._open().execute("SELECT summary FROM runs WHERE instr(summary, ?)", (name.encode(),))
            return any(name in _summary_in(blob).last_values for (blob,) in rows)
        except Exception as error:  # noqa: BLE001  # see `get`
            self._rebuild(error)
            return False

    def close(self) -> None:
        if self._db:
            self._db.close()
        self._db = None

    def _write(self, statement: str, values: "tuple[object, ...]") -> None:
        try:
            self._open().execute(statement, values)
        except Exception as error:  # noqa: BLE001  # see `get`
            self._rebuild(error)

    def _rows(self, run_ids: Collection[str]) -> list[tuple[str, bytes]]:
        db = self._open()
        if len(run_ids) > 500:  # a listing of all: one scan beats that many lookups
            wanted = set(run_ids)
            return [row for row in db.execute("SELECT run_id, summary FROM runs") if row[0] in wanted]
        marks = ", ".join("?" * len(run_ids))
        return db.execute(f"SELECT run_id, summary FROM runs WHERE run_id IN ({marks})", tuple(run_ids)).fetchall()

    def _some_rows(self, run_ids: list[str]) -> Iterator[tuple[str, bytes]]:
        """The rows of many runs, though not of all: look-ups, as long as they are cheaper than reading everything."""
        if len(run_ids) > MOST_LOOKUPS:
            yield from self._rows(run_ids)
            return
        for start in range(0, len(run_ids), 500):
            yield from self._rows(run_ids[start : start + 500])

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._remove_links()
            # OFF: it can be rebuilt.
            self._db = sqlite.open_writable(self._path, synchronous="OFF", exclusive=True, wait_s=WAIT_S)
            if sqlite.version(self._db) != SCHEMA:
                self._db.executescript(f"DROP TABLE IF EXISTS runs; {_SCHEMA}")
        return self._db

    def _remove_links(self) -> None:
        """SQLite would follow a link, or write through a second name, and change another program's database."""
        for path in self._files():
            try:
                found = path.lstat()
            except FileNotFoundError:
                continue
            if stat.S_ISLNK(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink > 1):
                log.warning("%s was a link to another file; a new index takes its place.", path)
                path.unlink()

    def _files(self) -> list[Path]:
        return [Path(f"{self._path}{suffix}") for suffix in ("", "-wal", "-shm")]

    def _rebuild(self, error: Exception) -> None:
        """Delete a damaged file; a full disk only costs this write."""
        log.warning("The index of runs failed and is rebuilt as needed: %s", error)
        self._figures.clear()
        self._metrics.clear()
        self.close()
        code = (getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_CORRUPT) & 0xFF
        if not isinstance(error, OSError) and code not in _TEMPORARY:
            for path in self._files():
                path.unlink(missing_ok=True)


def _summary_in(blob: bytes) -> RunSummary:
    summary = msgspec.msgpack.decode(blob, type=RunSummary)
    # Written before summaries were limited. Only a large one is looked at: a listing reads ten thousand.
    return limited(summary) if len(blob) > LARGE_BYTES else summary


_TEMPORARY = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_CANTOPEN,
}
