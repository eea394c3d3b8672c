"""What the daemon keeps in memory of one run's file: where its streams end, metric names, curves, the summary.

All of it is derived from the rows. A snapshot in the file saves what would take long to derive, so that opening a file
reads only the rows after the snapshot.
"""

import sqlite3
from dataclasses import replace

import msgspec

from mosaic.ingest.names import NameSets
from mosaic.ingest.points import points_of
from mosaic.ingest.returns import Returns
from mosaic.ingest.rollup import Curves
from mosaic.ingest.rows import KINDS, TABLES, Row, Rows, blob_of
from mosaic.ingest.tally import Steps, Tally
from mosaic.model.run import MOST_CURVES, RunSummary
from mosaic.wire import mosaic_pb2 as pb

EXAMPLE_BYTES = 200
SNAPSHOT_EVERY = 8192  # events; opening a file reads at most about this many rows again


class _Snapshot(msgspec.Struct, array_like=True):
    """The memory after event `seq`; the column curves.state belongs to it."""

    seq: int
    summary: RunSummary
    returns: Returns | None = None  # None: saved by an older MOSAIC
    steps: Steps | None = None


class _Lookalikes(msgspec.Struct, array_like=True):
    """Lines of text that a user may take for telemetry: how many, the first, why it is text."""

    count: int = 0
    first: str = ""
    why: str = ""

    def plus(self, more: pb.Lookalikes) -> "_Lookalikes":
        first = self.first or bytes(more.first[:EXAMPLE_BYTES]).decode(errors="replace")
        return _Lookalikes(self.count + more.count, first, self.why or more.why[:EXAMPLE_BYTES])

    @property
    def note(self) -> str:
        if not self.count:
            return ""
        lines = (
            "1 line looks like telemetry but is not"
            if self.count == 1
            else f"{self.count:,} lines look like telemetry but are not"
        )
        return f"{lines}: {self.first} ({self.why})"


class Memory:
    """Always agrees with the committed rows: after a rollback it is discarded and loaded again."""

    _lookalikes: _Lookalikes

    def __init__(self, db: sqlite3.Connection, run_id: str, is_evaluation: bool) -> None:
        self._is_evaluation = is_evaluation
        self._load_meta(db, run_id)
        cursor = db.execute("SELECT stream, next_offset, rejects FROM cursor ORDER BY stream").fetchall()
        self.next: dict[pb.Stream, int] = {stream: offset for stream, offset, _ in cursor}
        _check_cursor(cursor)
        newest = [db.execute(f"SELECT max(seq) FROM {table}").fetchone()[0] or 0 for table in TABLES.values()]
        self.last_seq: int = max(newest)
        self.names = NameSets(db.execute("SELECT id, names FROM name_sets").fetchall())
        self._load_snapshot(db)
        self.summary.rejects = sum(rejects for _, _, rejects in cursor)
        self.count_gaps(db)

    @property
    def summary(self) -> RunSummary:
        return self.tally.summary

    @property
    def needs_snapshot(self) -> bool:
        return self.summary.events >= self._snapshot_seq + SNAPSHOT_EVERY

    @property
    def is_ahead_of_snapshot(self) -> bool:
        return self.last_seq > self._snapshot_seq

    @property
    def notes(self) -> "list[str]":
        """What a user must know about the stored telemetry."""
        gap = f"{_amount(self._missing)} of its output are missing" if self._missing else ""
        if gap and self.is_renumbered:  # the numbers of the missing events are unknown
            gap += ", so its events have new numbers, from 1"
        names = f"only its first {MOST_CURVES:,} metrics have curves" if self.curves.has_refused else ""
        return [note for note in (self.rebuilt, gap, names, self._lookalikes.note, self.summary.note) if note]

    def summary_copy(self) -> RunSummary:
        return replace(self.tally.copy(), note="; ".join(self.notes))

    def count_gaps(self, db: sqlite3.Connection) -> None:
        """Count the bytes that the tailer could not read; the SDK's own gaps have no length."""
        self._missing: int = db.execute("SELECT coalesce(sum(length), 0) FROM gaps WHERE seq = 0").fetchone()[0]

    def note_lost_numbers(self, db: sqlite3.Connection, request: pb.PublishTelemetryRequest) -> None:
        """Note that the output begins with a gap: what a lost file had stored of it had the numbers from 1."""
        if request.stream == pb.STDOUT and request.start == 0 and not self.last_seq:
            self.is_renumbered = True
            db.execute("INSERT OR REPLACE INTO meta VALUES ('renumbered', x'01')")

    def keep_lookalikes(self, db: sqlite3.Connection, more: pb.Lookalikes) -> None:
        """Count lines that look like telemetry. A rollback discards this memory, and with it the count."""
        if more.count:
            self._lookalikes = self._lookalikes.plus(more)
            value = msgspec.msgpack.encode(self._lookalikes)
            db.execute("INSERT OR REPLACE INTO meta VALUES ('lookalikes', ?)", (value,))

    def advance(self, request: pb.PublishTelemetryRequest) -> None:
        """Move on after the commit of this batch."""
        self.last_seq += len(request.events)
        self.next[request.stream] = request.end
        self.summary.rejects += len(request.rejects)

    def save_snapshot(self, db: sqlite3.Connection) -> None:
        seq = self.summary.events
        value = msgspec.msgpack.encode(_Snapshot(seq, self.summary, self.tally.returns, self.tally.steps))
        db.executemany("UPDATE curves SET state = ? WHERE id = ?", self.curves.take_states())
        db.execute("INSERT OR REPLACE INTO meta VALUES ('snapshot', ?)", (value,))
        self._snapshot_seq = seq

    def _load_meta(self, db: sqlite3.Connection, run_id: str) -> None:
        meta = dict(
            db.execute("SELECT key, value FROM meta WHERE key IN ('run_id', 'rebuilt', 'lookalikes', 'renumbered')")
        )
        self.is_labelled = "run_id" in meta
        self.rebuilt: str = blob_of(meta.get("rebuilt", b"")).decode()
        self.is_renumbered = "renumbered" in meta
        found = meta.get("lookalikes")
        self._lookalikes = msgspec.msgpack.decode(found, type=_Lookalikes) if found else _Lookalikes()
        # A copy of another run's file would continue at that run's offset.
        if self.is_labelled and blob_of(meta["run_id"]) != run_id.encode():
            raise ValueError("it belongs to another run")

    def _load_snapshot(self, db: sqlite3.Connection) -> None:
        """Load the snapshot, then add the rows after it."""
        saved = db.execute("SELECT value FROM meta WHERE key = 'snapshot'").fetchone()
        snapshot = msgspec.msgpack.decode(saved[0], type=_Snapshot) if saved else _Snapshot(0, RunSummary())
        if not 0 <= snapshot.seq <= self.last_seq:
            raise ValueError("its snapshot does not belong to its rows")
        self._snapshot_seq = snapshot.seq
        self.curves: Curves = Curves(db.execute("SELECT id, name, state FROM curves"))
        self.tally: Tally = Tally(
            snapshot.summary, snapshot.returns or self._older_returns(db, snapshot), snapshot.steps
        )
        self.curves.note_names(snapshot.summary.last_values)
        rows = Rows(*(_rows_after(db, TABLES[kind], snapshot.seq) for kind in KINDS))
        metrics = points_of(rows.metric, self.names)
        self.curves.fold(rows, metrics)  # the buckets that this completes are already stored
        self.tally.fold(rows, metrics)

    def _older_returns(self, db: sqlite3.Connection, snapshot: _Snapshot) -> Returns:
        """Compute from the rows what is missing in a snapshot of an older MOSAIC."""
        returns = Returns(is_evaluation=self._is_evaluation)
        if snapshot.seq:
            returns.fold(db.execute("SELECT * FROM episodes WHERE seq <= ? ORDER BY seq", (snapshot.seq,)).fetchall())
            it = snapshot.summary
            # Step lines count from 0; metrics and heartbeats give the number of steps.
            it.env_steps = max(0, it.last_step + bool(it.steps))
        return returns


def _check_cursor(cursor: list[Row]) -> None:
    if [row[0] for row in cursor] != [pb.STDOUT, pb.STDERR]:
        raise ValueError("its cursor is incomplete")
    if any(type(part) is not int or part < 0 for row in cursor for part in row):
        raise ValueError("its cursor is not a number")


def _amount(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size:,} bytes"


def _rows_after(db: sqlite3.Connection, table: str, seq: int) -> list[Row]:
    return db.execute(f"SELECT * FROM {table} WHERE seq > ? ORDER BY seq", (seq,)).fetchall()
