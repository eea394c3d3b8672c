"""One curve of one run: the history that was read from the store, and the values that arrived since."""

from array import array
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mosaic.present.axes import ENV_STEPS, EPISODES, STEPS, TIME, axes_of
from mosaic.present.curve_points import Floats, Points

if TYPE_CHECKING:
    from mosaic.client.events import Curve

MOST_LIVE = 2000  # values kept as they are; more are merged into the history
MOST_HISTORY = 4000  # points; more are halved
MOST_EARLY = 50_000  # values that wait for the history; older ones are part of it anyway


class Value(NamedTuple):
    seq: int
    ts_s: float  # unix seconds
    env_step: int | None  # None: not reported
    number: int  # of the episode, or the worker's own step
    value: float


class Track:
    """1. No value is counted twice and none is lost, in whichever order history and live values arrive.
    2. Memory is bounded: older points are merged.

    History ends at the sequence number that the daemon has stored; live values up to it are part of the history.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.axis = STEPS  # what steps count
        self.version = 0  # grows with every change
        self.is_loaded = False
        self._history = Points.none()
        self._detail: Points | None = None  # of the range that the user chose
        self._live = _Live()
        self._early: deque[Value] = deque(maxlen=MOST_EARLY)
        self._last_seq = 0
        self._last_step = -np.inf
        self._started_at = 0.0
        self._env_step = 0

    def load(self, curve: "Curve") -> None:
        """Begin with this history, or replace the one there is: after a gap, for example."""
        recent = self._live.values if self.is_loaded else list(self._early)
        self._history = Points.of(curve)
        self.axis = curve.axis
        self._last_seq, self._started_at = curve.last_seq, curve.started_at
        self._last_step = self._history.step[-1] if len(self._history) else -np.inf
        self._live, self._early = _Live(), deque(maxlen=MOST_EARLY)
        self.is_loaded = True
        self.add(recent)
        self.version += 1

    def show_detail(self, curve: "Curve | None") -> None:
        """Points of a chosen range, which replace the coarser ones there. None: no more."""
        self._detail = Points.of(curve) if curve and curve.step else None
        self.version += 1

    def add(self, values: "list[Value]") -> None:
        if not self.is_loaded:
            self._early.extend(values)
            return
        for value in values:
            if self._is_new(value):
                self._live.add(value, self._place(value), value.ts_s - self._started_at)
        if len(self._live) > MOST_LIVE:
            self._merge()
        self.version += bool(values)

    def axes(self) -> tuple[str, ...]:
        has_seconds = bool(self._started_at) and not np.isnan(self._history.seconds).any()
        return axes_of(self.axis, self.name, has_seconds)

    def points(self) -> Points:
        """Everything known, in the order of storage; the chosen range in detail."""
        everything = self._history.then(self._live.points())
        return _replaced(everything, self._detail) if self._detail else everything

    def x(self, points: Points, axis: str) -> Floats:
        if axis == TIME:
            return points.seconds
        if axis == EPISODES and self.axis != EPISODES:
            return points.number
        return points.step

    def steps_between(self, axis: str, left: float, right: float) -> tuple[int, int]:
        """The steps of a range of an axis, for a query of that range."""
        points = self._history.then(self._live.points())
        if axis not in (TIME, EPISODES) or axis == self.axis or len(points) < 2:
            return int(np.floor(left)), int(np.ceil(right))
        x = self.x(points, axis)
        order = np.argsort(x, kind="stable")
        return (
            int(np.floor(np.interp(left, x[order], points.step[order]))),
            int(np.ceil(np.interp(right, x[order], points.step[order]))),
        )

    def _is_new(self, value: Value) -> bool:
        if self._last_seq:
            return value.seq > self._last_seq
        return self._place(value) > self._last_step  # the daemon did not say where its answer ends

    def _place(self, value: Value) -> float:
        """Where a value lies on the curve's axis; the first episode decides, as in the daemon."""
        if value.env_step is not None and self._is_empty():
            self.axis = ENV_STEPS
        elif self.name.startswith(("episode/", "eval/")) and self._is_empty():
            self.axis = EPISODES
        if self.axis != ENV_STEPS:
            return float(value.number)
        self._env_step = value.env_step if value.env_step is not None else self._env_step
        return float(self._env_step)

    def _is_empty(self) -> bool:
        return not len(self._history) and not len(self._live)

    def _merge(self) -> None:
        """Move live values into the history; the newest ones stay, in case a newer history arrives."""
        self._history = self._history.then(self._live.take(MOST_LIVE // 2))
        while len(self._history) > MOST_HISTORY:
            self._history = self._history.halved()


class _Live:
    """Values in the order of arrival, in columns that grow cheaply."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._step, self._value, self._seconds = array("d"), array("d"), array("d")

    def __len__(self) -> int:
        return len(self.values)

    def add(self, value: Value, step: float, seconds: float) -> None:
        self.values.append(value)
        self._step.append(step)
        self._value.append(value.value)
        self._seconds.append(seconds)

    def points(self) -> Points:
        return Points.single(*(np.array(column) for column in (self._step, self._value, self._seconds)))

    def take(self, kept: int) -> Points:
        """Remove all but the newest `kept`."""
        count = len(self) - kept
        taken = Points.single(*(np.array(column[:count]) for column in (self._step, self._value, self._seconds)))
        del self.values[:count], self._step[:count], self._value[:count], self._seconds[:count]
        return taken


def _replaced(coarse: Points, detail: Points) -> Points:
    before, after = coarse.step < detail.step.min(), coarse.step > detail.step.max()
    # The daemon does not number values within a range; the coarse points around it tell where its first one lies.
    earlier = np.interp(detail.step[0], np.maximum.accumulate(coarse.step), coarse.number) - 1 if len(coarse) else 0.0
    return coarse.where(before).joined(detail.numbered_from(max(0.0, earlier))).joined(coarse.where(after))
