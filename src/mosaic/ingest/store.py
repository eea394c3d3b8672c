"""The telemetry file of one run. One connection, used by one thread."""

import logging
import sqlite3
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mosaic_sdk.names import PARTS_WANTED

from mosaic.ingest.check import check
from mosaic.ingest.curve import CurveReader
from mosaic.ingest.events import EventPage, EventReader
from mosaic.ingest.imported import imported_rows
from mosaic.ingest.logs import LogPage, read_logs
from mosaic.ingest.points import Points, points_of
from mosaic.ingest.rows import KINDS, TABLES, Row, Rows, blob_of, rows_of
from mosaic.ingest.run_file import RunFile, on_file, on_own_file
from mosaic.ingest.tally import object_of, progress_of, storable_text
from mosaic.model.errors import BadBatch, MosaicError, NoCurve, StoreIncomplete
from mosaic.model.failpoints import failpoint
from mosaic.model.run import MOST_CURVES, RunSummary
from mosaic.wire import mosaic_pb2 as pb

log = logging.getLogger(__name__)

CHECKPOINT_EVERY = 16 << 20  # bytes of WAL, estimated …
SMALLEST_COMMIT = 32 << 10  # … because a commit writes whole pages
LOG_PAGE_BYTES = 1 << 20


@dataclass(frozen=True)
class Commit:
    """What a transaction stored."""

    first_seq: int  # last_seq + 1 if there was no event
    last_seq: int
    next_offset: int
    durable_offset: int  # bytes of the stream below it survive a power loss
    measured: bool  # the run has a step, an episode or a metric
    renumbered: bool = False  # events before these were lost with their numbers: see Memory.is_renumbered
    heartbeat: bool = False
    progress: int | None = None  # of the newest heartbeat in it
    wants_parts: bool = False  # its worker says where it takes up its parts


class RunStore(RunFile):
    """Promises:

    1. A commit stores all of a batch and the stream's next_offset, or nothing; it takes only what continues the stream.
    2. Every event gets the next seq; rollups and summary always agree with the rows.
    3. After a failure (disk full) the store is as it was before, and the next commit may work.
    4. After close(final=True) the file is complete on its own: no -wal, no -shm.
    5. A file that was deleted or replaced is restored from the open one. A truncated or damaged one is set aside, and
       a new one begins at offset 0: the tailer sends what the spool still has, and what it has not is a named gap.
    """

    def __init__(self, path: Path, run_id: str, read_only: bool = False, is_evaluation: bool = False) -> None:
        super().__init__(path, run_id, read_only, is_evaluation)
        self._wal_bytes = 0

    # -- writing

    @on_own_file
    def commit(self, request: pb.PublishTelemetryRequest) -> Commit:
        """Store the batch, or raise WrongOffset, BadBatch, StoreUnavailable, StoreFailed and store nothing."""
        try:
            return self._commit(request)
        except (UnicodeError, RecursionError) as error:  # text or nesting that SQLite cannot store
            self._roll_back()
            raise BadBatch(self.run_id, f"it cannot be stored ({error})") from error

    def _commit(self, request: pb.PublishTelemetryRequest) -> Commit:
        if request.stream not in self._memory.next:
            raise BadBatch(self.run_id, f"there is no stream {request.stream}")
        check(request, self.run_id, self._memory.next[request.stream])
        first = self._memory.last_seq + 1
        memory = self._memory
        was_renumbered = memory.is_renumbered
        rows = rows_of(request.events, memory.last_seq, memory.names, self.run_id, memory.summary.episodes)
        if request.end > request.start or request.gaps:
            failpoint("commit.open")
            self._write(request, rows)
            failpoint("commit.done")
            self._checkpoint_sometimes(request.end - request.start)
        return self._commit_of(request, rows, first, memory.is_renumbered and not was_renumbered)

    @on_own_file
    def append(self, batch: pb.ImportBatch) -> int:
        """Store events that another program recorded, with the cursor of their files. Returns the last seq."""
        memory = self._memory
        if batch.after_seq != memory.last_seq:
            why = f"the batch continues event {batch.after_seq}, but {memory.last_seq} are stored. Import it again"
            raise BadBatch(self.run_id, why)
        rows = imported_rows(batch, memory.last_seq, memory.names, self.run_id, memory.summary.episodes)
        with self._transaction() as db:
            self._insert_events(db, rows)
            self._insert_derived(db, rows)
            db.execute("INSERT OR REPLACE INTO meta VALUES ('import', ?)", (batch.cursor_json.encode(),))
            failpoint("import.full")
        memory.last_seq += sum(len(rows.of(kind)) for kind in KINDS)
        self._checkpoint_sometimes(batch.ByteSize())
        return memory.last_seq

    @on_file
    def imported(self) -> tuple[int, str]:
        """The last seq, and the cursor of the last import; empty if there was none."""
        found = self._open_db.execute("SELECT value FROM meta WHERE key = 'import'").fetchone()
        return self._memory.last_seq, blob_of(found[0]).decode() if found else ""

    @on_own_file
    def checkpoint(self) -> None:
        """Move what is committed from the WAL to the file, unless another program is reading it."""
        self._wal_bytes = 0
        busy, frames, done = self._open_db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if not busy and frames == done:
            self._durable = dict(self._memory.next)

    def close(self, final: bool = False) -> None:
        """Close the file. final: the run is complete; leave one file without a -wal, or raise."""
        try:
            if self._db and not self.read_only:
                self._save(final)
        except MosaicError:
            if final:  # otherwise only the snapshot is missing, and the next open takes longer
                raise
        finally:
            self._shut()

    def _write(self, request: pb.PublishTelemetryRequest, rows: Rows) -> None:
        memory = self._memory
        with self._transaction() as db:
            self._insert_events(db, rows)
            self._insert_places(db, request, rows)
            self._insert_derived(db, rows)
            memory.keep_lookalikes(db, request.lookalikes)
            failpoint("commit.full")
            if request.gaps:
                memory.count_gaps(db)
                memory.note_lost_numbers(db, request)
        memory.advance(request)
        self._acknowledged[request.stream] = max(self._acknowledged[request.stream], request.end)

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
        gaps += [_reported_gap(request, row) for row in rows.lifecycle if row[2] == "telemetry_gap"]
        db.executemany("INSERT OR IGNORE INTO gaps VALUES (?, ?, ?, ?, ?)", gaps)
        db.execute(
            "UPDATE cursor SET next_offset = ?, rejects = rejects + ? WHERE stream = ?",
            (request.end, len(request.rejects), stream),
        )

    def _insert_derived(self, db: sqlite3.Connection, rows: Rows) -> None:
        """What follows from the events: curves, the summary, names, and sometimes a snapshot of all that."""
        memory = self._memory
        metrics = points_of(rows.metric, memory.names)
        self._insert_curves(db, rows, metrics)
        memory.tally.fold(rows, metrics)
        db.executemany("INSERT INTO name_sets VALUES (?, ?)", memory.names.take_fresh())
        if memory.needs_snapshot:
            memory.save_snapshot(db)

    def _insert_curves(self, db: sqlite3.Connection, rows: Rows, metrics: dict[str, Points]) -> None:
        curves = self._memory.curves
        finished = curves.fold(rows, metrics)
        db.executemany("INSERT INTO curves (id, name) VALUES (?, ?)", curves.take_fresh())
        db.executemany(_INSERT_ROLLUP, finished.rollups)
        db.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?)", finished.chunks)

    def _commit_of(self, request: pb.PublishTelemetryRequest, rows: Rows, first: int, renumbered: bool) -> Commit:
        beats = [row for row in rows.lifecycle if row[2] == "heartbeat"]
        return Commit(
            first_seq=first,
            last_seq=self._memory.last_seq,
            next_offset=request.end,
            durable_offset=self._durable[request.stream],
            measured=self._is_measured,
            renumbered=renumbered,
            heartbeat=bool(beats),
            wants_parts=any(row[2] == PARTS_WANTED for row in rows.lifecycle),
            progress=progress_of(beats[-1][3]) if beats else None,
        )

    def _checkpoint_sometimes(self, spool_bytes: int) -> None:
        self._wal_bytes += max(SMALLEST_COMMIT, spool_bytes)
        if self._wal_bytes >= CHECKPOINT_EVERY:
            try:
                self.checkpoint()
            except MosaicError as error:  # the commit is stored; only durable_offset is delayed
                log.warning("The checkpoint failed: %s", error, extra={"run_id": self.run_id})
                self._ensure_open()

    # -- reading

    @on_file
    def events(
        self, since: int, until: "int | None" = None, kinds: "Collection[str] | None" = None, limit: int = 1000
    ) -> EventPage:
        """Events of these kinds after `since`, in order: at most `limit` of them, and about 1 MiB."""
        return self._reader.page(since, self._memory.last_seq if until is None else until, kinds, limit)

    @on_file
    def tail(self, n: int, kinds: "Collection[str] | None" = None) -> pb.EventBatch:
        """The newest n events of these kinds, oldest first."""
        return self._reader.tail(n, kinds)

    @on_file
    def since_of_tail(self, n: int, kinds: "Collection[str] | None" = None) -> int:
        """The `since` that is followed by the newest n events of these kinds."""
        return self._reader.since_of_tail(n, kinds)

    @on_file
    def logs(self, stream: pb.Stream, start: int, max_bytes: int = LOG_PAGE_BYTES) -> LogPage:
        """Text, rejects and gaps from byte `start` on."""
        return read_logs(self._open_db, stream, start, self._memory.next[stream], max_bytes)

    @on_file
    def curve(
        self, name: str, points: int = 0, from_step: "int | None" = None, to_step: "int | None" = None
    ) -> pb.Curve:
        """At most `points` points (0: 2000); with an empty name only the names of all curves."""
        curve = self._memory.curves.by_name.get(name)
        if curve is None and name and self._memory.curves.has_refused:
            raise NoCurve(self.run_id, name, MOST_CURVES)
        if curve is None:
            return pb.Curve(name=name, known_names=[] if name else self.curve_names())
        found = CurveReader(self._open_db, curve, from_step, to_step).read(points)
        found.last_seq = self._memory.last_seq
        return found

    @on_file
    def curve_names(self) -> list[str]:
        return sorted(self._memory.curves.by_name)

    @on_file
    def cursor(self) -> pb.Cursor:
        out, err = self._memory.next[pb.STDOUT], self._memory.next[pb.STDERR]
        return pb.Cursor(stdout_offset=out, stderr_offset=err, next_seq=self._memory.last_seq + 1)

    @on_file
    def summary(self) -> RunSummary:
        return self._memory.summary_copy()

    @property
    @on_file
    def is_measured(self) -> bool:
        return self._is_measured

    @property
    def _is_measured(self) -> bool:
        it = self._memory.summary
        return bool(it.steps or it.episodes or it.metrics)

    @on_file
    def parts_wanted(self) -> bytes:
        """The payload of the newest line that says where its worker takes up parts; empty if there is none."""
        sql = "SELECT payload FROM lifecycle WHERE event = ? ORDER BY seq DESC LIMIT 1"
        row = self._open_db.execute(sql, (PARTS_WANTED,)).fetchone()
        return blob_of(row[0]) if row else b""

    @property
    @on_file
    def has_heartbeats(self) -> bool:
        beat = self._open_db.execute("SELECT 1 FROM lifecycle WHERE event = 'heartbeat' LIMIT 1").fetchone()
        return beat is not None

    @property
    @on_file
    def is_final(self) -> bool:
        """The file was closed with final=True and has not been written since."""
        return bool(self._open_db.execute("PRAGMA journal_mode").fetchone()[0] == "delete")

    @property
    def _reader(self) -> EventReader:
        return EventReader(self._open_db, self._memory.names, self._memory.last_seq, self._memory.is_renumbered)

    @on_own_file
    def _save(self, final: bool) -> None:
        behind = any(self._memory.next[stream] < end for stream, end in self._acknowledged.items())
        if final and behind:
            raise StoreIncomplete(f"{self.path} was lost and is being rebuilt from the output of the run.")
        if self._memory.is_ahead_of_snapshot:
            with self._transaction() as db:
                self._memory.save_snapshot(db)
        if final:
            self._finalize()

    def _finalize(self) -> None:
        try:
            self._leave_wal_mode()
        except sqlite3.OperationalError:
            if self._has_name:
                raise
        if not self._has_name:  # it was deleted meanwhile
            # SQLite has refused to leave WAL mode (SQLITE_READONLY_DBMOVED), and reads nothing until it is in another.
            self._open_db.execute("PRAGMA journal_mode = MEMORY")
            self._restore()
            self._leave_wal_mode()

    @property
    def _has_name(self) -> bool:
        return self._held is not None and self._held.has_name

    def _leave_wal_mode(self) -> None:
        self._open_db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._open_db.execute("PRAGMA journal_mode = DELETE")
        with suppress(OSError):
            Path(f"{self.path}-shm").unlink()  # left by an older MOSAIC; a folder there does not matter


def _reported_gap(request: pb.PublishTelemetryRequest, row: Row) -> Row:
    """Lines that the SDK counted and could not write; how many bytes they had is unknown."""
    payload = object_of(row[3])
    reason = f"{payload.get('lines', 'some')} lines were not written: {payload.get('reason', 'no reason given')}"
    return (request.stream, request.start, 0, storable_text(reason), row[0])


_INSERT_ROLLUP = f"INSERT INTO rollups VALUES ({', '.join('?' * 12)})"
_WIDTHS = {"step": 10, "episode": 11, "metric": 6, "lifecycle": 5}
_INSERT = {kind: f"INSERT INTO {TABLES[kind]} VALUES ({', '.join('?' * _WIDTHS[kind])})" for kind in KINDS}
