"""Curves: the named sequences of (step, value) points of a run, aggregated so that millions are read in milliseconds.

    points    0 … 63 │ 64 … 127 │ 128 …             in the order of storage
    level 0   └─ 64 ─┘└── 64 ──┘                     rollups (n, nans, total, low, high, steps) and the packed points
    level 1   └────────── 1,024 ─────────┘           rollups
    level 2   └────────────────────── 16,384 ─ …     rollups

A bucket is written in the transaction that stores its last point. Unfinished buckets are in memory and saved in
snapshots. When a file is opened, the rows after the snapshot are added again: the same points give the same buckets.
A NaN counts as a point (`n`, `nans`) but not in total, low or high.

Every point has a time. If the 64 points of a bucket lie within a second, as steps do, only the first and the last time
are stored, and the others are interpolated: all of them would take half as much space as the points themselves. Points
that an older MOSAIC stored have no time, which is 0 here.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import msgspec

from mosaic.ingest.points import Points
from mosaic.ingest.returns import EVALUATION
from mosaic.ingest.rows import AGENT, GLOBAL_STEP, RETURN, Row, Rows, number
from mosaic.model.run import MOST_CURVES

LEVELS = (64, 1024, 16384)
CHUNK = LEVELS[0]
SHORT_NS = 10**9  # a bucket within this time stores its first and last time only
NAN = float("nan")
_time, _place, _value = itemgetter(1), itemgetter(2), itemgetter(3)  # of a step's or an episode's row
ENV_STEPS, EPISODES, STEPS = "env steps", "episodes", "steps"  # what the steps of a curve count


class Bucket(msgspec.Struct, array_like=True):
    """Consecutive points, aggregated. The fields are the columns of `rollups` after its key."""

    n: int
    nans: int
    total: float
    low: float  # NaN if every point is
    high: float
    step_low: int
    step_high: int
    step_last: int
    ts_last: int = 0  # ns; 0: unknown

    @classmethod
    def of(cls, steps: Sequence[int], values: Sequence[float], ts_last: int = 0) -> "Bucket":
        total = sum(values)
        if total == total:
            return cls(len(values), 0, total, min(values), max(values), min(steps), max(steps), steps[-1], ts_last)
        real = [value for value in values if value == value]
        low, high = min(real, default=NAN), max(real, default=NAN)
        nans = len(values) - len(real)
        return cls(len(values), nans, sum(real), low, high, min(steps), max(steps), steps[-1], ts_last)

    def add(self, later: "Bucket") -> None:
        self.n += later.n
        self.nans += later.nans
        self.total += later.total
        if later.low < self.low or self.low != self.low:
            self.low = later.low
        if later.high > self.high or self.high != self.high:
            self.high = later.high
        self.step_low = min(self.step_low, later.step_low)
        self.step_high = max(self.step_high, later.step_high)
        self.step_last = later.step_last
        self.ts_last = later.ts_last

    @property
    def mean(self) -> float:
        counted = self.n - self.nans
        return self.total / counted if counted else NAN

    def copy(self) -> "Bucket":
        return msgspec.structs.replace(self)


@dataclass(slots=True)
class Finished:
    """Rows for buckets that are complete."""

    rollups: list[Row] = field(default_factory=list)
    chunks: list[Row] = field(default_factory=list)


def pack_times(times: "array[int]") -> bytes:
    is_short = max(times) - min(times) < SHORT_NS
    return array("q", (times[0], times[-1])).tobytes() if is_short else times.tobytes()


def unpack_times(packed: "bytes | None") -> "array[int]":
    """The times of the 64 points of a bucket; 0: unknown."""
    times = array("q", packed or bytes(16))
    if len(times) == CHUNK:
        return times
    first, last = times
    return array("q", [first + (last - first) * i // (CHUNK - 1) for i in range(CHUNK)])


class _State(msgspec.Struct, array_like=True):
    chunks: int
    steps: bytes
    values: bytes
    wide: list["Bucket | None"]
    axis: str = ""
    env_step: int = 0
    times: bytes = b""  # empty: saved by an older MOSAIC


class Curve:
    """The unfinished end of one curve."""

    def __init__(self, number: int, name: str, state: "bytes | None" = None) -> None:
        self.number = number
        self.name = name
        self.chunks = 0  # finished buckets of level 0
        self.steps = array("q")
        self.values = array("d")
        self.times = array("q")
        self.wide: list[Bucket | None] = [None, None]  # levels 1 and 2, without the points in steps and values
        self.axis = ""  # set at the first episode
        self.env_step = 0  # of the last episode that had one
        if state:
            self._restore(state)

    @property
    def count(self) -> int:
        return self.chunks * CHUNK + len(self.values)

    def places(self, episodes: list[Row]) -> list[int]:
        """The positions of these episodes on the curve's axis.

        The first episode decides for all: env steps if it has them, else the number of the episode. A later episode
        without env steps gets those of the one before it, so the two kinds of number never share an axis.
        """
        if not self.axis:
            has_env_steps = not self.count and episodes[0][GLOBAL_STEP] is not None
            self.axis = ENV_STEPS if has_env_steps else EPISODES
        if self.axis == EPISODES:
            return [row[2] for row in episodes]
        places = []
        for row in episodes:
            if row[GLOBAL_STEP] is not None:
                self.env_step = row[GLOBAL_STEP]
            places.append(self.env_step)
        return places

    def extend(self, steps: Iterable[int], values: Iterable[float], times: Iterable[int], finished: Finished) -> None:
        self.steps.extend(steps)
        self.values.extend(values)
        self.times.extend(times)
        whole = len(self.values) - len(self.values) % CHUNK
        for start in range(0, whole, CHUNK):
            part = slice(start, start + CHUNK)
            self._finish(self.steps[part], self.values[part], self.times[part], finished)
        if whole:
            del self.steps[:whole], self.values[:whole], self.times[:whole]

    def unfinished(self, level: int) -> "Bucket | None":
        """The incomplete bucket at the end of this level."""
        wide = self.wide[level - 1] if level else None
        if not self.values:
            return wide.copy() if wide else None
        last = Bucket.of(self.steps, self.values, self.times[-1])
        if wide is None:
            return last
        whole = wide.copy()
        whole.add(last)
        return whole

    def state(self) -> bytes:
        points = (self.steps.tobytes(), self.values.tobytes())
        times = self.times.tobytes()
        return msgspec.msgpack.encode(_State(self.chunks, *points, self.wide, self.axis, self.env_step, times))

    def _restore(self, state: bytes) -> None:
        saved = msgspec.msgpack.decode(state, type=_State)
        self.chunks, self.wide = saved.chunks, saved.wide
        self.axis, self.env_step = saved.axis, saved.env_step
        self.steps.frombytes(saved.steps)
        self.values.frombytes(saved.values)
        self.times.frombytes(saved.times or bytes(len(saved.steps)))

    def _finish(self, steps: "array[int]", values: "array[float]", times: "array[int]", finished: Finished) -> None:
        bucket = Bucket.of(steps, values, times[-1])
        packed = pack_times(times)
        finished.chunks.append((self.number << 32 | self.chunks, steps.tobytes(), values.tobytes(), packed))
        finished.rollups.append((self.number, 0, self.chunks, *msgspec.structs.astuple(bucket)))
        self.chunks += 1
        for level in (1, 2):
            self._widen(level, bucket, finished)

    def _widen(self, level: int, bucket: Bucket, finished: Finished) -> None:
        wide = self.wide[level - 1]
        if wide is None:
            self.wide[level - 1] = wide = bucket.copy()
        else:
            wide.add(bucket)
        if wide.n == LEVELS[level]:
            place = self.chunks * CHUNK // LEVELS[level] - 1
            finished.rollups.append((self.number, level, place, *msgspec.structs.astuple(wide)))
            self.wide[level - 1] = None


class Curves:
    """All curves of a run."""

    def __init__(self, stored: "Iterable[tuple[int, str, bytes | None]]") -> None:
        self.by_name = {name: Curve(number, name, state) for number, name, state in stored}
        self._fresh: list[Curve] = []
        self._touched: set[str] = set()
        self.has_refused = False  # a name got no curve, because there are too many

    def note_names(self, names: Iterable[str]) -> None:
        """Names that the run has used, from a snapshot: one without a curve was refused."""
        self.has_refused = self.has_refused or any(name not in self.by_name for name in names)

    def fold(self, rows: Rows, metrics: dict[str, Points]) -> Finished:
        """Add these rows; `metrics` has the points of rows.metric. Returns the buckets that they completed."""
        finished = Finished()
        rewarded = [row for row in rows.step if row[3] is not None]
        # map is twice as fast as a comprehension here, and every step passes through it.
        values = [*map(number, map(_value, rewarded))]
        self._extend("step/reward", [*map(_place, rewarded)], values, map(_time, rewarded), finished)
        if rows.episode:
            self._fold_episodes(rows.episode, finished)
        for name, points in metrics.items():
            self._extend(name, *points, finished)
        return finished

    def take_fresh(self) -> list[Row]:
        """The curves that are not yet in the table `curves`."""
        fresh, self._fresh = self._fresh, []
        return [(curve.number, curve.name) for curve in fresh]

    def take_states(self) -> "list[tuple[bytes, int]]":
        """(state, number) of every curve that grew since the last call."""
        touched, self._touched = self._touched, set()
        return [(curve.state(), curve.number) for curve in map(self.by_name.__getitem__, touched)]

    def _fold_episodes(self, rows: list[Row], finished: Finished) -> None:
        # Evaluation episodes of a training run have separate curves.
        evals = [row for row in rows if row[AGENT] == EVALUATION]
        trained = [row for row in rows if row[AGENT] != EVALUATION] if evals else rows
        for prefix, played in (("episode", trained), ("eval", evals)):
            curve = (self.by_name.get(f"{prefix}/return") or self._add(f"{prefix}/return")) if played else None
            if curve:
                places, times = curve.places(played), [*map(_time, played)]
                self._extend(f"{prefix}/return", places, [number(row[RETURN]) for row in played], times, finished)
                self._extend(f"{prefix}/length", places, [float(row[4]) for row in played], times, finished)
                if lengths := self.by_name.get(f"{prefix}/length"):
                    lengths.axis = curve.axis

    def _extend(
        self, name: str, steps: list[int], values: list[float], times: Iterable[int], finished: Finished
    ) -> None:
        if not values:
            return
        curve = self.by_name.get(name) or self._add(name)
        if curve:
            curve.extend(steps, values, times, finished)
            self._touched.add(name)

    def _add(self, name: str) -> "Curve | None":
        if len(self.by_name) >= MOST_CURVES:
            self.has_refused = True
            return None
        curve = self.by_name[name] = Curve(len(self.by_name) + 1, name)
        self._fresh.append(curve)
        return curve
