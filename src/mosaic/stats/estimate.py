"""An average of a group's runs, and how sure it is."""

from dataclasses import dataclass
from typing import Any

from mosaic.stats.averages import Average, Strata
from mosaic.stats.resampling import Draws, fresh_draws, percentile_interval, resampled

Interval = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    value: float
    interval: Interval | None  # 95 %; None with fewer than two runs in one of the environments

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "interval": None if self.interval is None else list(self.interval)}


def estimate(strata: Strata, average: Average, draws: Draws | None = None) -> Estimate:
    """The average of all runs, with its percentile interval. `draws`: the resamples; default: always the same ones."""
    value = float(average(strata))
    if min(map(len, strata)) < 2:
        return Estimate(value, None)
    return Estimate(value, percentile_interval(resampled(strata, average, draws or fresh_draws(strata))))
