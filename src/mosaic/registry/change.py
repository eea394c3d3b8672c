"""One change of the registry: a transaction, then the records of the rows that it changed."""

import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mosaic.model.errors import StoreFailed, StoreUnavailable
from mosaic.model.failpoints import failpoint
from mosaic.model.states import LIVE_STATES, RunState
from mosaic.registry.records import Records, is_of_one_run

log = logging.getLogger(__name__)

# Columns that change while a run lives; the others are in the first line of its record. `waiting_for` is not recorded:
# the dispatcher decides it anew, and one start changes it in thousands of rows.
CHANGING = (
    "state, reason, attempt, updated_at, session, cancel_requested, held_by, telemetry, capabilities, calls_beats, "
    "name, tags, note"
)
EXPERIMENT = ("name", "document", "note", "created_at")  # what is recorded of one
# States in which no worker lives: not yet, or no longer.
_WITHOUT_WORKER = {state.value for state in RunState} - {state.value for state in LIVE_STATES} | {RunState.INIT.value}
_DISK = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Changes:
    """Transactions on one connection. Every change gets a new revision, and is recorded when it is committed."""

    def __init__(self, db: sqlite3.Connection, path: Path, records: Records) -> None:
        self._db = db
        self._path = path
        self._records = records
        self._behind: set[str] = set()  # runs whose record could not be written; they need a whole line
        self._unwritable: set[str] = set()  # those of them of which the log tells already
        self._untold: list[dict[str, Any]] = []  # notes that could not be written
        self.revision = 0  # of the last change

    @contextmanager
    def change(self, are_recorded: bool = True) -> Iterator[int]:
        """One transaction under a new revision, rolled back on any error."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            revision = self._next_revision()
            yield revision
            failpoint("registry.commit")
            self._db.execute("COMMIT")
            failpoint("registry.committed")
        except sqlite3.DatabaseError as error:
            self._roll_back()
            raise explained(error, self._path) from error
        except BaseException:
            self._roll_back()
            raise
        self.revision = revision
        self._record(revision, self._changed(revision) if are_recorded else ())

    def tell(self, line: dict[str, Any]) -> None:
        """Record, with the next line that can be written, what belongs to no row."""
        self._untold.append(line)

    def catch_up(self) -> None:
        """Record the rows that changed after the last recorded revision: a daemon was killed before it recorded."""
        done, now = self._records.revision(), self._clock()
        self.revision = now
        if done == now:
            return
        rows = self._db.execute("SELECT id, revision FROM runs WHERE revision > ?", (done,)).fetchall()
        deleted = self._db.execute("SELECT run_id, revision FROM deleted WHERE revision > ?", (done,)).fetchall()
        experiments = self._db.execute("SELECT name, document, note, created_at, revision FROM experiments").fetchall()
        self._behind.update(run_id for run_id, _ in rows)
        self._untold += [{"deleted": run_id, "revision": at} for run_id, at in deleted]
        # All names: an experiment may have been deleted without a record.
        self._untold.append({"experiment_names": [row[0] for row in experiments], "revision": now})
        self._untold += [
            {"experiment": dict(zip(EXPERIMENT, row[:4], strict=True)), "revision": row[4]}
            for row in experiments
            if row[4] > done
        ]
        self._untold.append({"drained": [list(row) for row in self._db.execute("SELECT * FROM drained")]})
        self._record(now, ())

    def close(self) -> None:
        self._records.close()

    def _clock(self) -> int:
        """The revision in the file; -1 for a damaged one."""
        row = self._db.execute("SELECT revision FROM clock").fetchone()
        return row[0] if row and isinstance(row[0], int) else -1

    def _next_revision(self) -> int:
        """A damaged clock is left as it is: the next start notices it, and the numbers in the records still grow."""
        found = self._clock()
        if found < self.revision:
            return self.revision + 1
        self._db.execute("UPDATE clock SET revision = ?", (found + 1,))
        return found + 1

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._untold = []

    def _changed(self, revision: int) -> list[str]:
        return [run_id for (run_id,) in self._db.execute("SELECT id FROM runs WHERE revision = ?", (revision,))]

    def _record(self, revision: int, run_ids: Iterable[str]) -> None:
        """Write what is new. A full disk must not refuse a change that is committed: the record follows later."""
        whole = set(self._behind)
        self._behind.update(run_ids)
        try:
            for run_id in sorted(self._behind):
                self._try_write(run_id, whole=run_id in whole or not self._records.has(run_id))
            while self._untold:
                self._records.note(self._untold[0])
                del self._untold[0]
            self._records.mark(revision)
        except (OSError, sqlite3.Error) as error:
            log.warning("The registry's records cannot be written now and follow later: %s", error)

    def _try_write(self, run_id: str, whole: bool) -> None:
        """Write one run's record. What is wrong with its own folder keeps no other run's record waiting."""
        try:
            self._write(run_id, whole)
        except OSError as error:
            if not is_of_one_run(error):
                raise
            if run_id not in self._unwritable:
                log.warning("Its record cannot be written: %s", error, extra={"run_id": run_id})
            self._unwritable.add(run_id)

    def _write(self, run_id: str, whole: bool) -> None:
        line = self._line(run_id, whole)
        if line is not None:
            self._records.append(run_id, line, may_make_folder=line["row"]["state"] in _WITHOUT_WORKER)
        self._behind.discard(run_id)
        self._unwritable.discard(run_id)

    def _line(self, run_id: str, whole: bool) -> dict[str, Any] | None:
        columns = "*" if whole else f"{CHANGING}, revision"
        found = self._db.execute(f"SELECT {columns} FROM runs WHERE id = ?", (run_id,))
        names, values = [column[0] for column in found.description], found.fetchone()
        if values is None:
            return None  # deleted meanwhile
        row = dict(zip(names, values, strict=True))
        gpus = self._db.execute("SELECT uuid FROM gpus WHERE run_id = ? ORDER BY position", (run_id,))
        # The whole history each time: it has about five lines, and a line that was lost does not matter then.
        moves = self._db.execute("SELECT old, new, at, reason FROM history WHERE run_id = ? ORDER BY rowid", (run_id,))
        row.pop("waiting_for", None)
        line = {
            "revision": row.pop("revision"),
            "row": row,
            "gpus": [uuid for (uuid,) in gpus],
            "history": [list(move) for move in moves],
        }
        return line if _is_json(line) else None


def _is_json(line: dict[str, Any]) -> bool:
    """False for a damaged row (a blob in a text column): the record keeps its last good line."""
    try:
        json.dumps(line)
    except (TypeError, ValueError):
        return False
    return True


def explained(error: sqlite3.DatabaseError, path: Path) -> Exception:
    """The error as a user reads it; others unchanged."""
    # The low byte is the kind of error; the rest is a detail.
    kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if kind in _DISK:
        return StoreUnavailable(f"{path}: {error}. Nothing was changed. Free some disk space and try again.")
    if kind in _DAMAGE:
        return StoreFailed(
            f"{path} is damaged ({error}). Restart the daemon, which rebuilds it; runs continue meanwhile: "
            "mosaic daemon stop && mosaic daemon start"
        )
    return error
