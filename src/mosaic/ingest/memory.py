"""What the daemon keeps in memory of one run's file: where its streams end, metric names, curves, the summary.

All of it is derived from the rows. A snapshot in the file saves what would take long to derive, so that opening a file
reads only the rows after the snapshot.
"""

import sqlite3

import msgspec

from mosaic.ingest.names import NameSets
from mosaic.ingest.returns import Returns
from mosaic.ingest.rollup import Curves
from mosaic.ingest.rows import KINDS, TABLES, Row, Rows
from mosaic.ingest.tally import Steps, Tally
from mosaic.model.run import RunSummary
from mosaic.wire import mosaic_pb2 as pb

SNAPSHOT_EVERY = 8192  # events; opening a file reads at most about this many rows again


class _Snapshot(msgspec.Struct, array_like=True):
    """The memory after event `seq`; the column curves.state belongs to it."""

    seq: int
    summary: RunSummary
    returns: Returns | None = None  # None: saved by an older MOSAIC
    steps: Steps | None = None


class Memory:
    """Always agrees with the committed rows: after a rollback it is discarded and loaded again."""

    def __init__(self, db: sqlite3.Connection, is_evaluation: bool) -> None:
        self._is_evaluation = is_evaluation
        cursor = db.execute("SELECT stream, next_offset, rejects FROM cursor").fetchall()
        self.next: dict[pb.Stream, int] = {stream: offset for stream, offset, _ in cursor}
        newest = [db.execute(f"SELECT max(seq) FROM {table}").fetchone()[0] or 0 for table in TABLES.values()]
        self.last_seq: int = max(newest)
        self.names = NameSets(db.execute("SELECT id, names FROM name_sets").fetchall())
        self._load_snapshot(db)
        self.summary.rejects = sum(rejects for _, _, rejects in cursor)

    @property
    def summary(self) -> RunSummary:
        return self.tally.summary

    @property
    def needs_snapshot(self) -> bool:
        return self.summary.events >= self._snapshot_seq + SNAPSHOT_EVERY

    @property
    def is_ahead_of_snapshot(self) -> bool:
        return self.last_seq > self._snapshot_seq

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

    def _load_snapshot(self, db: sqlite3.Connection) -> None:
        """Load the snapshot, then add the rows after it."""
        saved = db.execute("SELECT value FROM meta WHERE key = 'snapshot'").fetchone()
        snapshot = msgspec.msgpack.decode(saved[0], type=_Snapshot) if saved else _Snapshot(0, RunSummary())
        self._snapshot_seq = snapshot.seq
        self.curves: Curves = Curves(db.execute("SELECT id, name, state FROM curves"))
        self.tally: Tally = Tally(
            snapshot.summary, snapshot.returns or self._older_returns(db, snapshot), snapshot.steps
        )
        rows = Rows(*(_rows_after(db, TABLES[kind], snapshot.seq) for kind in KINDS))
        self.curves.fold(rows, self.names)  # the buckets that this completes are already stored
        self.tally.fold(rows, self.names)

    def _older_returns(self, db: sqlite3.Connection, snapshot: _Snapshot) -> Returns:
        """Compute from the rows what is missing in a snapshot of an older MOSAIC."""
        returns = Returns(is_evaluation=self._is_evaluation)
        if snapshot.seq:
            returns.fold(db.execute("SELECT * FROM episodes WHERE seq <= ? ORDER BY seq", (snapshot.seq,)).fetchall())
            it = snapshot.summary
            # Step lines count from 0; metrics and heartbeats give the number of steps.
            it.env_steps = max(0, it.last_step + bool(it.steps))
        return returns


def _rows_after(db: sqlite3.Connection, table: str, seq: int) -> list[Row]:
    return db.execute(f"SELECT * FROM {table} WHERE seq > ? ORDER BY seq", (seq,)).fetchall()
