"""The curve of one run as numbers, the steps that several have in common, and the area under each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mosaic.stats.averages import Floats

POINTS = 2000


@dataclass(frozen=True)
class Trace:
    """Points in the order of their steps, all finite. A point is the mean of `count` values up to its step."""

    step: Floats
    value: Floats
    count: Floats

    @classmethod
    def of(cls, step: ArrayLike, value: ArrayLike, count: ArrayLike | None = None) -> "Trace":
        """Without the values that are not finite; in the order of the steps, which a restarted worker repeats."""
        steps, values = np.asarray(step, np.float64), np.asarray(value, np.float64)
        counted = np.ones(len(steps)) if count is None else np.asarray(count, np.float64)
        kept = np.isfinite(values)
        steps, values, counted = steps[kept], values[kept], counted[kept]
        order = np.argsort(steps, kind="stable")
        return cls(steps[order], values[order], counted[order])

    def __len__(self) -> int:
        return len(self.step)

    def between(self, first: float, last: float) -> "Trace":
        inside = (self.step >= first) & (self.step <= last)
        return Trace(self.step[inside], self.value[inside], self.count[inside])

    def newest(self, many: int) -> float:
        """The mean of the newest `many` values; a point that stands for more of them counts in part."""
        before = np.cumsum(self.count[::-1]) - self.count[::-1]
        weight = np.clip(many - before, 0.0, self.count[::-1])
        return float(np.sum(weight * self.value[::-1]) / np.sum(weight))

    def area(self, first: float, last: float) -> float:
        """The area under the curve divided by the number of steps: the mean over these steps, not over the points."""
        if last <= first:
            return float(np.interp(first, self.step, self.value))
        inner = self.step[(self.step > first) & (self.step < last)]
        steps = np.concatenate(([first], inner, [last]))
        return float(np.trapezoid(np.interp(steps, self.step, self.value), steps) / (last - first))


def common_range(traces: Sequence[Trace]) -> tuple[float, float] | None:
    """From where the last of them begins to where the first of them ends; None if they do not overlap."""
    first = max((float(trace.step[0]) for trace in traces if len(trace)), default=0.0)
    last = min((float(trace.step[-1]) for trace in traces if len(trace)), default=-1.0)
    return (first, last) if first <= last else None


def grid_for(traces: Sequence[Trace], first: float, last: float, points: int = POINTS) -> Floats:
    """Evenly spaced steps: as many as a typical run has points in this range, at most `points`."""
    typical = int(np.median([np.count_nonzero((trace.step >= first) & (trace.step <= last)) for trace in traces]))
    return np.linspace(first, last, max(2, min(points, typical))) if last > first else np.array([first])


def on_grid(trace: Trace, grid: Floats) -> Floats:
    """The trace at the steps of the grid: the mean of the values since the step before; NaN outside of its range.

    Where there are none since the step before, the curve is interpolated between its neighbours.
    """
    bins = np.searchsorted(grid, trace.step)
    inside = bins < len(grid)
    weight = np.bincount(bins[inside], trace.count[inside], len(grid))
    total = np.bincount(bins[inside], (trace.count * trace.value)[inside], len(grid))
    filled = (weight > 0) & (grid >= trace.step[0]) & (grid <= trace.step[-1])
    found = np.interp(grid, trace.step, trace.value, left=np.nan, right=np.nan)
    found[filled] = total[filled] / weight[filled]
    return found
