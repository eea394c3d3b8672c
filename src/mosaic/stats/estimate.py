"""An average of a group's runs, and how sure it is."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic.stats.averages import AVERAGES, Average, Strata, order_weights
from mosaic.stats.resampling import Draws, fresh_draws, percentile_interval, resampled

Interval = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    value: float
    interval: Interval | None  # 95 %; None with fewer than two runs in one of the environments

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "interval": None if self.interval is None else list(self.interval)}


def estimate_all(strata: Strata) -> dict[str, Estimate]:
    """Every average. With one environment they share the resamples, sorted once, which takes most of the time."""
    if len(strata) > 1 or len(strata[0]) < 2:
        return {name: estimate(strata, average) for name, average in AVERAGES.items()}
    (values,), (indexes,) = strata, fresh_draws(strata)
    drawn = np.sort(values[indexes], axis=1)
    return {
        name: Estimate(float(average(strata)), percentile_interval(drawn @ order_weights(name, len(values))))
        for name, average in AVERAGES.items()
    }


def estimate(strata: Strata, average: Average, draws: Draws | None = None) -> Estimate:
    """The average of all runs, with its percentile interval. `draws`: the resamples; default: always the same ones."""
    value = float(average(strata))
    if min(map(len, strata)) < 2:
        return Estimate(value, None)
    return Estimate(value, percentile_interval(resampled(strata, average, draws or fresh_draws(strata))))
