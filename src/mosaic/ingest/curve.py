"""Reads a curve in a limited number of points, each the aggregate of consecutive stored ones, from few rows.

It reads the finest level that has at most ten thousand rows and lets SQLite group them. A short curve, or a short
window of a long one, is read from the packed points; it is exact if there are no more points than requested.
"""

import sqlite3
from array import array
from collections.abc import Iterator

from mosaic.ingest.rollup import CHUNK, EPISODES, LEVELS, NAN, STEPS, Bucket, Curve, unpack_times
from mosaic.ingest.rows import TABLES, Row
from mosaic.wire import mosaic_pb2 as pb

POINTS = 2000
MOST_POINTS = 10_000
MOST_ROWS = 10_000  # of one level; reading costs about 1 µs per row
FAR = 2**63 - 1

# The join is needed because with several min() and max() it is undefined which row a bare step_last comes from.
_GROUPS = """
SELECT g.n, g.nans, g.total, g.low, g.high, g.step_low, g.step_high, r.step_last, coalesce(r.ts_last, 0)
FROM (
  SELECT sum(n) AS n, sum(nans) AS nans, CASE WHEN count(total) = count(*) THEN sum(total) END AS total,
         min(low) AS low, max(high) AS high, min(step_low) AS step_low, max(step_high) AS step_high, max(bucket) AS last
  FROM rollups
  WHERE curve = :curve AND level = :level AND bucket BETWEEN :first AND :last AND step_high >= :from AND step_low <= :to
  GROUP BY (bucket - :first) / :width
) g JOIN rollups r ON r.curve = :curve AND r.level = :level AND r.bucket = g.last
ORDER BY g.last
"""
_WINDOW = """
SELECT min(bucket), max(bucket) FROM rollups
WHERE curve = ? AND level = ? AND bucket BETWEEN ? AND ? AND step_high >= ? AND step_low <= ?
"""


class CurveReader:
    """Reads one curve inside a window of steps."""

    def __init__(self, db: sqlite3.Connection, curve: Curve, from_step: "int | None", to_step: "int | None") -> None:
        self._db = db
        self._curve = curve
        self._everything = from_step is None and to_step is None
        self._from = -FAR if from_step is None else from_step
        self._to = FAR if to_step is None else to_step

    def read(self, points: int = 0) -> pb.Curve:
        points = min(points or POINTS, MOST_POINTS)
        started_ns = _first_time(self._db)
        first, end = self._span()
        if end - first <= CHUNK * points:
            return _message(self._curve, self._raw(first, end, points), started_ns)
        level = next((i for i, size in enumerate(LEVELS) if (end - first) // size <= MOST_ROWS), 2)
        return _message(self._curve, self._summed(level, first, end, points), started_ns)

    def _span(self) -> "tuple[int, int]":
        """The range [first, end) of ordinals that contains all points of the window."""
        first, end = 0, self._curve.count
        if self._everything:
            return first, end
        for level in (2, 1, 0):
            if (end - first) // LEVELS[level] <= MOST_ROWS:
                first, end = self._narrow(level, first, end)
        return first, end

    def _narrow(self, level: int, first: int, end: int) -> "tuple[int, int]":
        size = LEVELS[level]
        finished = self._curve.count // size
        place = (self._curve.number, level, first // size, min(finished, -(-end // size)) - 1)
        low, high = self._db.execute(_WINDOW, (*place, self._from, self._to)).fetchone()
        unfinished = self._curve.unfinished(level) if end > finished * size else None
        if unfinished and unfinished.step_high >= self._from and unfinished.step_low <= self._to:
            low, high = finished if low is None else low, finished
        if low is None:
            return first, first
        return max(first, low * size), min(end, (high + 1) * size)

    def _raw(self, first: int, end: int, points: int) -> Iterator[Bucket]:
        steps, values, times = self._points(first, end)
        if not self._everything:
            inside = [i for i, step in enumerate(steps) if self._from <= step <= self._to]
            steps, times = array("q", [steps[i] for i in inside]), array("q", [times[i] for i in inside])
            values = array("d", [values[i] for i in inside])
        width = max(1, -(-len(values) // points))
        for i in range(0, len(values), width):
            end = min(i + width, len(values))
            yield Bucket.of(steps[i:end], values[i:end], times[end - 1])

    def _points(self, first: int, end: int) -> "tuple[array[int], array[float], array[int]]":
        steps, values, times = array("q"), array("d"), array("q")
        base = self._curve.number << 32
        last = min(self._curve.chunks, -(-end // CHUNK)) - 1
        chunks = self._db.execute(
            "SELECT steps, value_list, times FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id",
            (base + first // CHUNK, base + last),
        )
        for packed_steps, packed_values, packed_times in chunks:
            steps.frombytes(packed_steps)
            values.frombytes(packed_values)
            times.extend(unpack_times(packed_times))
        if end > self._curve.chunks * CHUNK:
            steps.extend(self._curve.steps)
            values.extend(self._curve.values)
            times.extend(self._curve.times)
        return steps, values, times

    def _summed(self, level: int, first: int, end: int, points: int) -> Iterator[Bucket]:
        size = LEVELS[level]
        low, high = first // size, -(-end // size) - 1
        width = -(-(high - low + 1) // points)
        groups = self._db.execute(
            _GROUPS,
            {
                "curve": self._curve.number,
                "level": level,
                "first": low,
                "last": high,
                "from": self._from,
                "to": self._to,
                "width": width,
            },
        )
        buckets = [_bucket(group) for group in groups]
        unfinished = self._curve.unfinished(level) if high >= self._curve.count // size else None
        if unfinished and unfinished.step_high >= self._from and unfinished.step_low <= self._to:
            if buckets and (high - low) % width:
                buckets[-1].add(unfinished)
            else:
                buckets.append(unfinished)
        return iter(buckets)


def _bucket(group: Row) -> Bucket:
    fields: Row = tuple(NAN if field is None else field for field in group)
    return Bucket(*fields)


def _message(of: Curve, buckets: Iterator[Bucket], started_ns: int) -> pb.Curve:
    # Curves of episodes from an older MOSAIC have no axis stored; it was always the same.
    axis = of.axis or (EPISODES if of.name in ("episode/return", "episode/length") else STEPS)
    curve = pb.Curve(name=of.name, axis=axis, started_at=started_ns / 1e9)
    times = []
    for bucket in buckets:
        curve.step.append(bucket.step_last)
        curve.mean.append(bucket.mean)
        curve.min.append(bucket.low)
        curve.max.append(bucket.high)
        curve.count.append(bucket.n)
        times.append(bucket.ts_last)
    if started_ns and all(times):
        curve.seconds.extend(max(0, time - started_ns) / 1e9 for time in times)
    return curve


def _first_time(db: sqlite3.Connection) -> int:
    """When the run's first event happened, in ns; 0 if there is none."""
    found = (db.execute(f"SELECT ts_ns FROM {table} WHERE seq = 1").fetchone() for table in TABLES.values())
    return next((int(row[0]) for row in found if row), 0)
