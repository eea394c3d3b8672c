"""The points of a curve as columns. A point is one value, or the aggregate of consecutive ones."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mosaic.client.events import Curve

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    step: Floats  # of the last value
    mean: Floats
    low: Floats
    high: Floats
    count: Floats  # how many values it stands for
    number: Floats  # of its last value, counted from 1 at the curve's first
    seconds: Floats  # since the start of the run; NaN: unknown

    def __len__(self) -> int:
        return len(self.step)

    @classmethod
    def none(cls) -> "Points":
        return cls(*(np.empty(0) for _ in range(7)))

    @classmethod
    def of(cls, curve: "Curve") -> "Points":
        seconds = curve.seconds if curve.seconds is not None else np.full(len(curve.step), np.nan)
        columns = (curve.step, curve.mean, curve.min, curve.max, curve.count, np.cumsum(curve.count), seconds)
        return cls(*(np.asarray(column, np.float64) for column in columns))

    @classmethod
    def single(cls, step: Floats, value: Floats, seconds: Floats) -> "Points":
        """Points that are one value each."""
        count = np.ones(len(step))
        return cls(step, value, value, value, count, np.cumsum(count), seconds)

    def columns(self) -> tuple[Floats, ...]:
        return self.step, self.mean, self.low, self.high, self.count, self.number, self.seconds

    def then(self, later: "Points") -> "Points":
        """These points and later ones, which are numbered on."""
        return self.joined(later.numbered_from(self.number[-1] if len(self) else 0.0))

    def numbered_from(self, before: float) -> "Points":
        """The same points, if `before` values came before the first of them."""
        return replace(self, number=self.number - (self.number[0] - self.count[0]) + before) if len(self) else self

    def joined(self, later: "Points") -> "Points":
        return Points(*(np.concatenate(pair) for pair in zip(self.columns(), later.columns(), strict=True)))

    def where(self, chosen: "NDArray[np.bool_]") -> "Points":
        return Points(*(column[chosen] for column in self.columns()))

    def halved(self) -> "Points":
        """Neighbours merged: half the points, the same lowest, highest and mean values. A last odd one stays."""
        even = len(self) // 2 * 2
        pairs = Points(*(column[:even] for column in self.columns()))
        merged = Points(
            pairs.step[1::2],
            _mean_of_pairs(pairs.mean, pairs.count),
            np.fmin(pairs.low[0::2], pairs.low[1::2]),
            np.fmax(pairs.high[0::2], pairs.high[1::2]),
            pairs.count[0::2] + pairs.count[1::2],
            pairs.number[1::2],
            pairs.seconds[1::2],
        )
        return merged.joined(Points(*(column[even:] for column in self.columns())))


def _mean_of_pairs(mean: Floats, count: Floats) -> Floats:
    """Weighted by count. NaN beside a number is left out; infinities stay."""
    weight = np.where(np.isnan(mean), 0.0, count)
    total = np.where(np.isnan(mean), 0.0, mean) * weight
    weights = weight[0::2] + weight[1::2]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((total[0::2] + total[1::2]) / weights)
