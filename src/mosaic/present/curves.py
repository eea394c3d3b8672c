"""Curves of runs, ready to draw: history from the daemon, then live values, without counting one twice."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mosaic.client.events import Episode, Metric, Step
from mosaic.present.curve_points import Floats
from mosaic.present.curve_track import Track, Value

if TYPE_CHECKING:
    from mosaic.client.events import Curve, Event

STEP_REWARD = "step/reward"
EVALUATION = "eval"  # the agent of evaluation episodes within a training run


@dataclass(frozen=True)
class Series:
    """One curve of a chart. `x` is sorted; `low` and `high`: the extremes of what a point stands for."""

    key: str
    label: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    colour: int = 0  # an index into the theme's curves; from the eighth on, dashes tell equal colours apart
    is_faded: bool = False  # of a run that is gone


class CurveStore:
    """The curves that are open, by run and name. Its owner does the queries:

    1. `open(run, name)`, then `load(run, await client.query_curve(run, name, 2000))`.
    2. `add(run, batch.events)` for every batch of a feed; values of curves that are not open are ignored.
    3. `series(run, name, axis)` whenever `version(run, name)` has changed.
    A zoom: `detail_range` gives from_step and to_step for `query_curve`, `show_detail` takes the answer.
    """

    def __init__(self) -> None:
        self._tracks: dict[str, dict[str, Track]] = {}

    def open(self, run_id: str, name: str) -> bool:
        """Keep this curve from now on; returns whether its history must be queried."""
        track = self._tracks.setdefault(run_id, {}).setdefault(name, Track(name))
        return not track.is_loaded

    def close(self, run_id: str, name: str = "") -> None:
        """Drop a curve, or all curves of a run."""
        if name:
            self._tracks.get(run_id, {}).pop(name, None)
        else:
            self._tracks.pop(run_id, None)

    def names(self, run_id: str) -> list[str]:
        """The names of the run's open curves."""
        return list(self._tracks.get(run_id, {}))

    def load(self, run_id: str, curve: "Curve") -> None:
        """Take over an answer of `query_curve` for the whole curve. Ignored if the curve was closed meanwhile."""
        if track := self._track(run_id, curve.name):
            track.load(curve)

    def add(self, run_id: str, events: "Iterable[Event]") -> set[str]:
        """Append the values of these events; returns the names of the curves that got some."""
        tracks = self._tracks.get(run_id)
        if not tracks:
            return set()
        found: dict[str, list[Value]] = {}
        for event in events:
            _collect(event, tracks, found)
        for name, values in found.items():
            tracks[name].add(values)
        return set(found)

    def version(self, run_id: str, name: str) -> int:
        """A number that grows with every change of the curve; -1 if it is not open."""
        track = self._track(run_id, name)
        return track.version if track else -1

    def is_loaded(self, run_id: str, name: str) -> bool:
        track = self._track(run_id, name)
        return bool(track and track.is_loaded)

    def axes(self, run_id: str, name: str) -> tuple[str, ...]:
        """What the curve can be drawn over. Empty before its history is there."""
        track = self._track(run_id, name)
        return track.axes() if track and track.is_loaded else ()

    def step_axis(self, run_id: str, name: str) -> str:
        """What the steps of the curve count: env steps, episodes, or "steps" as the worker numbers them."""
        track = self._track(run_id, name)
        return track.axis if track else ""

    def detail_range(self, run_id: str, name: str, axis: str, left: float, right: float) -> tuple[int, int]:
        """from_step and to_step of a range of this axis."""
        track = self._track(run_id, name)
        return track.steps_between(axis, left, right) if track else (int(left), int(right))

    def show_detail(self, run_id: str, name: str, curve: "Curve | None") -> None:
        """Use these points within their range. None: back to the whole curve."""
        if track := self._track(run_id, name):
            track.show_detail(curve)

    def series(
        self, run_id: str, name: str, axis: str, label: str = "", colour: int = 0, is_faded: bool = False
    ) -> Series:
        """The curve over this axis; empty before its history is there."""
        track = self._track(run_id, name)
        if track is None:
            return Series(f"{run_id}/{name}", label or name, np.empty(0), np.empty(0), colour=colour, is_faded=is_faded)
        points = track.points()
        x = track.x(points, axis)
        columns: tuple[Floats, ...] = (x, points.mean, points.low, points.high)
        if np.any(np.diff(x) < 0):  # a worker that started over, or environments that take turns
            order = np.argsort(x, kind="stable")
            columns = tuple(column[order] for column in columns)
        x, mean, low, high = columns
        band = (low, high) if np.any(points.count > 1) else (None, None)
        return Series(f"{run_id}/{name}", label or name, x, mean, band[0], band[1], colour, is_faded)

    def columns(self, run_id: str, name: str, axis: str) -> tuple[Floats, Floats, Floats]:
        """x, mean and count of its points, in the order of storage; empty before its history is there."""
        track = self._track(run_id, name)
        if track is None:
            return np.empty(0), np.empty(0), np.empty(0)
        points = track.points()
        return track.x(points, axis), points.mean, points.count

    def _track(self, run_id: str, name: str) -> Track | None:
        return self._tracks.get(run_id, {}).get(name)


def _collect(event: "Event", tracks: dict[str, Track], found: dict[str, list[Value]]) -> None:
    """Add the event's values of open curves to `found`."""
    if isinstance(event, Metric):
        for name, value in event.values.items():
            if name in tracks:
                found.setdefault(name, []).append(Value(event.seq, event.ts_ns / 1e9, None, event.step, value))
    elif isinstance(event, Episode):
        prefix = EVALUATION if event.agent_id == EVALUATION else "episode"
        for name, value in ((f"{prefix}/return", event.total_reward), (f"{prefix}/length", float(event.steps))):
            if name in tracks:
                place = (event.global_step, event.episode_index)
                found.setdefault(name, []).append(Value(event.seq, event.ts_ns / 1e9, *place, value))
    elif isinstance(event, Step) and event.reward is not None and STEP_REWARD in tracks:
        found.setdefault(STEP_REWARD, []).append(
            Value(event.seq, event.ts_ns / 1e9, None, event.step_index, event.reward)
        )
