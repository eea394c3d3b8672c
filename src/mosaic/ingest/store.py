"""The telemetry file of one run. One connection, used by one thread."""

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import msgspec

from mosaic.ingest.check import check
from mosaic.ingest.curve import CurveReader
from mosaic.ingest.damage import damaged, meaning
from mosaic.ingest.events import EventPage, EventReader
from mosaic.ingest.file import connect
from mosaic.ingest.logs import LogPage, read_logs
from mosaic.ingest.names import NameSets
from mosaic.ingest.returns import Returns
from mosaic.ingest.rollup import Curves
from mosaic.ingest.rows import KINDS, TABLES, Row, Rows, rows_of
from mosaic.ingest.tally import Steps, Tally, object_of, progress_of, sayable
from mosaic.model.errors import BadBatch, MosaicError, StoreUnavailable
from mosaic.model.failpoints import failpoint
from mosaic.model.run import RunSummary
from mosaic.wire import mosaic_pb2 as pb

log = logging.getLogger(__name__)

SNAPSHOT_EVERY = 8192  # events; at open about so many are folded again, at most
CHECKPOINT_EVERY = 16 << 20  # bytes of WAL, estimated …
SMALLEST_COMMIT = 32 << 10  # … a commit writes whole pages
LOG_PAGE_BYTES = 1 << 20

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Commit:
    """What a transaction stored."""

    first_seq: int  # last_seq + 1 when there was no event
    last_seq: int
    next_offset: int
    durable_offset: int  # bytes of the stream below it survive a power loss
    measured: bool  # the run has a step, an episode or a metric
    heartbeat: bool = False
    progress: int | None = None  # of the newest heartbeat in it


class _Snapshot(msgspec.Struct, array_like=True):
    """What memory held after event `seq`; curves.state belongs to it."""

    seq: int
    summary: RunSummary
    returns: Returns | None = None  # None: an older MOSAIC saved it
    steps: Steps | None = None


def _told(method: "Callable[Concatenate[RunStore, P], T]") -> "Callable[Concatenate[RunStore, P], T]":
    """SQLite's errors leave a RunStore as ours, with the transaction undone."""

    @wraps(method)
    def wrapper(self: "RunStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            self._wake()
            return method(self, *args, **kwargs)
        except sqlite3.Error as error:
            self._undo()
            if told := meaning(error, self.path):
                raise told from error
            raise
        except OSError as error:
            # A folder in the file's place, no descriptor left: this run's trouble, and the thread serves others too.
            self._undo()
            raise StoreUnavailable(f"{self.path} cannot be used now: {error}. It is tried again by itself.") from error
        except (OverflowError, UnicodeError, RecursionError) as error:
            # A number, a text or a nesting that no file takes. The thread serves other runs too and must not die of it.
            self._undo()
            raise BadBatch(self.run_id, f"it cannot be stored ({error})") from error

    return wrapper


class RunStore:
    """Promises:

    1. A commit stores all of a batch and the stream's next_offset, or nothing; it takes only what continues the stream.
    2. Every event gets the next seq; rollups and summary always agree with the rows.
    3. After a failure (disk full) the store is as before it, and the next commit may work.
    4. After close(final=True) the file stands alone: no -wal, no -shm.
    """

    def __init__(self, path: Path, run_id: str, read_only: bool = False, is_evaluation: bool = False) -> None:
        self.path = path
        self.run_id = run_id
        self.read_only = read_only
        self._is_evaluation = is_evaluation
        self._db: sqlite3.Connection | None = None
        self._loaded = False
        self._durable = {pb.STDOUT: 0, pb.STDERR: 0}
        self._wal_bytes = 0

    # -- writing

    @_told
    def commit(self, request: pb.PublishTelemetryRequest) -> Commit:
        """Store the batch, or raise WrongOffset, BadBatch, StoreUnavailable, StoreFailed and store nothing."""
        if request.stream not in self._next:
            raise BadBatch(self.run_id, f"there is no stream {request.stream}")
        check(request, self.run_id, self._next[request.stream])
        first = self._last_seq + 1
        rows = rows_of(request.events, self._last_seq, self._names, self.run_id)
        if request.end > request.start or request.gaps:
            failpoint("commit.open")
            self._write(request, rows)
            failpoint("commit.done")
            self._checkpoint_sometimes(request.end - request.start)
        return self._commit_of(request, rows, first)

    @_told
    def checkpoint(self) -> None:
        """Bring what is committed onto the disk itself, if nobody's reader is in the way."""
        self._wal_bytes = 0
        busy, frames, done = self._open_db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if not busy and frames == done:
            self._durable = dict(self._next)

    def close(self, final: bool = False) -> None:
        """Close the file. final: nothing more will come; leave one file that stands alone, or raise."""
        try:
            if self._db and not self.read_only:
                self._settle(final)
        except MosaicError:
            if final:  # without a new snapshot the next open only takes longer
                raise
        finally:
            self._shut()

    def _write(self, request: pb.PublishTelemetryRequest, rows: Rows) -> None:
        with self._transaction() as db:
            self._insert_events(db, rows)
            self._insert_places(db, request, rows)
            self._insert_curves(db, rows)
            self._tally.fold(rows, self._names)
            db.executemany("INSERT INTO name_sets VALUES (?, ?)", self._names.take_fresh())
            if self._tally.summary.events >= self._snapshot_seq + SNAPSHOT_EVERY:
                self._save_snapshot(db)
            failpoint("commit.full")
        self._last_seq += len(request.events)
        self._next[request.stream] = request.end
        self._tally.summary.rejects += len(request.rejects)

    def _insert_events(self, db: sqlite3.Connection, rows: Rows) -> None:
        for kind in KINDS:
            if rows.of(kind):
                db.executemany(_INSERT[kind], rows.of(kind))

    def _insert_places(self, db: sqlite3.Connection, request: pb.PublishTelemetryRequest, rows: Rows) -> None:
        stream = request.stream
        db.executemany("INSERT INTO logs VALUES (?, ?, ?)", [(stream, t.offset, t.text) for t in request.texts])
        db.executemany(
            "INSERT INTO rejects VALUES (?, ?, ?, ?, ?)",
            [(stream, r.offset, r.length, r.reason, r.head) for r in request.rejects],
        )
        gaps: list[Row] = [(stream, g.offset, g.length, g.reason, 0) for g in request.gaps]
        gaps += [_told_gap(request, row) for row in rows.lifecycle if row[2] == "telemetry_gap"]
        db.executemany("INSERT OR IGNORE INTO gaps VALUES (?, ?, ?, ?, ?)", gaps)
        db.execute(
            "UPDATE cursor SET next_offset = ?, rejects = rejects + ? WHERE stream = ?",
            (request.end, len(request.rejects), stream),
        )

    def _insert_curves(self, db: sqlite3.Connection, rows: Rows) -> None:
        finished = self._curves.fold(rows, self._names)
        db.executemany("INSERT INTO curves (id, name) VALUES (?, ?)", self._curves.take_fresh())
        db.executemany(_INSERT_ROLLUP, finished.rollups)
        db.executemany("INSERT INTO chunks VALUES (?, ?, ?)", finished.chunks)

    def _commit_of(self, request: pb.PublishTelemetryRequest, rows: Rows, first: int) -> Commit:
        beats = [row for row in rows.lifecycle if row[2] == "heartbeat"]
        return Commit(
            first_seq=first,
            last_seq=self._last_seq,
            next_offset=request.end,
            durable_offset=self._durable[request.stream],
            measured=self.is_measured,
            heartbeat=bool(beats),
            progress=progress_of(beats[-1][3]) if beats else None,
        )

    def _checkpoint_sometimes(self, spool_bytes: int) -> None:
        self._wal_bytes += max(SMALLEST_COMMIT, spool_bytes)
        if self._wal_bytes >= CHECKPOINT_EVERY:
            try:
                self.checkpoint()
            except MosaicError as error:  # the commit stands; only durable_offset waits
                log.warning("The checkpoint failed: %s", error, extra={"run_id": self.run_id})
                self._wake()

    # -- reading

    @_told
    def events(
        self, since: int, until: "int | None" = None, kinds: "Collection[str] | None" = None, limit: int = 1000
    ) -> EventPage:
        """The wanted events after `since`, in order: at most `limit`, and about a MiB."""
        return self._reader.page(since, self._last_seq if until is None else until, kinds, limit)

    @_told
    def tail(self, n: int, kinds: "Collection[str] | None" = None) -> pb.EventBatch:
        """The newest n wanted events, oldest first."""
        return self._reader.tail(n, kinds)

    @_told
    def since_of_tail(self, n: int, kinds: "Collection[str] | None" = None) -> int:
        """The `since` after which come the newest n wanted events."""
        return self._reader.since_of_tail(n, kinds)

    @_told
    def logs(self, stream: pb.Stream, start: int, max_bytes: int = LOG_PAGE_BYTES) -> LogPage:
        """Text, rejects and gaps from byte `start` on."""
        return read_logs(self._open_db, stream, start, self._next[stream], max_bytes)

    @_told
    def curve(
        self, name: str, points: int = 0, from_step: "int | None" = None, to_step: "int | None" = None
    ) -> pb.Curve:
        """At most `points` points (0: 2000); without a name only the names there are."""
        curve = self._curves.by_name.get(name)
        if curve is None:
            return pb.Curve(name=name, known_names=[] if name else sorted(self._curves.by_name))
        return CurveReader(self._open_db, curve, from_step, to_step).read(points)

    @_told
    def curve_names(self) -> list[str]:
        return sorted(self._curves.by_name)

    @_told
    def cursor(self) -> pb.Cursor:
        out, err = self._next[pb.STDOUT], self._next[pb.STDERR]
        return pb.Cursor(stdout_offset=out, stderr_offset=err, next_seq=self._last_seq + 1)

    @_told
    def summary(self) -> RunSummary:
        return self._tally.copy()

    @property
    @_told
    def is_measured(self) -> bool:
        it = self._tally.summary
        return bool(it.steps or it.episodes or it.metrics)

    @property
    @_told
    def has_heartbeats(self) -> bool:
        beat = self._open_db.execute("SELECT 1 FROM lifecycle WHERE event = 'heartbeat' LIMIT 1").fetchone()
        return beat is not None

    @property
    @_told
    def is_final(self) -> bool:
        """The file was closed for good, and nobody has written to it since."""
        return bool(self._open_db.execute("PRAGMA journal_mode").fetchone()[0] == "delete")

    @property
    def _reader(self) -> EventReader:
        return EventReader(self._open_db, self._names, self._last_seq)

    # -- opening, failing, closing

    @property
    def _open_db(self) -> sqlite3.Connection:
        assert self._db is not None
        return self._db

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Committed at the end; _told undoes it when something in it fails."""
        db = self._open_db
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("COMMIT")

    def _wake(self) -> None:
        """Open the file and load what memory must know, unless both are done."""
        if self._db is None:
            self._db = connect(self.path, self.read_only)
        if not self._loaded:
            try:
                self._load(self._db)
            except (ValueError, LookupError, TypeError) as error:
                raise damaged(self.path, error) from error
            self._loaded = True

    def _undo(self) -> None:
        # Memory may have run ahead of the rows that are rolled back: load it again before the next use.
        self._loaded = False
        try:
            if self._db and self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            self._shut()

    def _load(self, db: sqlite3.Connection) -> None:
        cursor = db.execute("SELECT stream, next_offset, rejects FROM cursor").fetchall()
        self._next: dict[pb.Stream, int] = {stream: offset for stream, offset, _ in cursor}
        newest = [db.execute(f"SELECT max(seq) FROM {table}").fetchone()[0] or 0 for table in TABLES.values()]
        self._last_seq: int = max(newest)
        self._names = NameSets(db.execute("SELECT id, names FROM name_sets").fetchall())
        self._load_snapshot(db)
        self._tally.summary.rejects = sum(rejects for _, _, rejects in cursor)

    def _load_snapshot(self, db: sqlite3.Connection) -> None:
        """Memory as it was at the snapshot, then the rows after it."""
        saved = db.execute("SELECT value FROM meta WHERE key = 'snapshot'").fetchone()
        snapshot = msgspec.msgpack.decode(saved[0], type=_Snapshot) if saved else _Snapshot(0, RunSummary())
        self._snapshot_seq = snapshot.seq
        self._curves = Curves(db.execute("SELECT id, name, state FROM curves"))
        self._tally = Tally(snapshot.summary, snapshot.returns or self._older_returns(db, snapshot), snapshot.steps)
        rows = Rows(*(_rows_after(db, TABLES[kind], snapshot.seq) for kind in KINDS))
        self._curves.fold(rows, self._names)  # the buckets it finishes are stored already
        self._tally.fold(rows, self._names)

    def _older_returns(self, db: sqlite3.Connection, snapshot: _Snapshot) -> Returns:
        """What a snapshot of an older MOSAIC, or none, leaves to be worked out from the rows before it."""
        returns = Returns(is_evaluation=self._is_evaluation)
        if snapshot.seq:
            returns.fold(db.execute("SELECT * FROM episodes WHERE seq <= ? ORDER BY seq", (snapshot.seq,)).fetchall())
            it = snapshot.summary
            # Its step lines count from 0, metrics and heartbeats tell how many there were.
            it.env_steps = max(0, it.last_step + bool(it.steps))
        return returns

    def _save_snapshot(self, db: sqlite3.Connection) -> None:
        seq = self._tally.summary.events
        value = msgspec.msgpack.encode(_Snapshot(seq, self._tally.summary, self._tally.returns, self._tally.steps))
        db.executemany("UPDATE curves SET state = ? WHERE id = ?", self._curves.take_states())
        db.execute("INSERT OR REPLACE INTO meta VALUES ('snapshot', ?)", (value,))
        self._snapshot_seq = seq

    @_told
    def _settle(self, final: bool) -> None:
        if self._last_seq > self._snapshot_seq:
            with self._transaction() as db:
                self._save_snapshot(db)
        if final:
            self._open_db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._open_db.execute("PRAGMA journal_mode = DELETE")

    def _shut(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = None
        self._loaded = False


def _rows_after(db: sqlite3.Connection, table: str, seq: int) -> list[Row]:
    return db.execute(f"SELECT * FROM {table} WHERE seq > ? ORDER BY seq", (seq,)).fetchall()


def _told_gap(request: pb.PublishTelemetryRequest, row: Row) -> Row:
    """Lines the SDK counted and could not write; nobody knows how many bytes they were."""
    payload = object_of(row[3])
    reason = f"{payload.get('lines', 'some')} lines were not written: {payload.get('reason', 'no reason given')}"
    return (request.stream, request.start, 0, sayable(reason), row[0])


_INSERT_ROLLUP = f"INSERT INTO rollups VALUES ({', '.join('?' * 11)})"
_WIDTHS = {"step": 10, "episode": 11, "metric": 6, "lifecycle": 5}
_INSERT = {kind: f"INSERT INTO {TABLES[kind]} VALUES ({', '.join('?' * _WIDTHS[kind])})" for kind in KINDS}
