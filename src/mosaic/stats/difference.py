"""Two groups of runs: the difference of their averages, its interval, and whether it is more than luck."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from mosaic_sdk.results.comparison import LEVEL
from mosaic_sdk.results.resampling import holm

from mosaic.stats.averages import AVERAGES, Strata
from mosaic.stats.estimate import Interval
from mosaic.stats.improvement import probability_of_improvement
from mosaic.stats.permutation import lowest_p, permutation_p
from mosaic.stats.resampling import fresh_draws, percentile_interval, resampled

MOST_NEEDED = 100


@dataclass(frozen=True)
class Difference:
    """What the runs say about groups `a` and `b`. They are not paired: a seed means something else to each group."""

    a: str
    b: str
    n_a: int
    n_b: int
    average: str  # iqm, mean or median
    difference: float | None  # a - b; None if one of them has no run, or they have no environment in common
    interval: Interval | None = None  # 95 %; None with fewer than two runs on one side
    probability: float | None = None  # that a run of `a` has a higher value than a run of `b`; ties count half
    probability_interval: Interval | None = None
    p_value: float = 1.0  # of the rank test
    p_adjusted: float = 1.0  # by Holm's method, for all comparisons made together
    p_lowest: float = 1.0  # adjusted: no numbers give a smaller one with so few runs
    comparisons: int = 1  # made together

    @property
    def excludes_zero(self) -> bool:
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)

    @property
    def is_clear(self) -> bool:
        """Whether it is more than luck: the interval excludes 0, the test, adjusted, agrees, and both say the same."""
        return self.excludes_zero and self.p_adjusted < LEVEL and self._is_consistent

    @property
    def _is_consistent(self) -> bool:
        """Whether the group with the higher average is also the one whose runs are higher more often."""
        if self.difference is None or self.probability is None:
            return False
        return self.difference * (self.probability - 0.5) > 0

    @property
    def is_hopeless(self) -> bool:
        """Whether there are too few runs for any difference to be clear."""
        return self.p_lowest >= LEVEL

    def to_dict(self) -> dict[str, Any]:
        plain = asdict(self)
        for key in ("interval", "probability_interval"):
            plain[key] = None if plain[key] is None else list(plain[key])
        return {**plain, "clear": self.is_clear}


def difference(a: str, left: Strata, b: str, right: Strata, average: str = "iqm") -> Difference:
    """Strata of the same environments, in the same order."""
    n_a, n_b = sum(map(len, left)), sum(map(len, right))
    if not left or not right or not min(map(len, (*left, *right))):
        return Difference(a, b, n_a, n_b, average, None)
    value_of = AVERAGES[average]
    chance = probability_of_improvement(left, right)
    found = Difference(
        a,
        b,
        n_a,
        n_b,
        average,
        difference=float(value_of(left) - value_of(right)),
        probability=chance.value,
        probability_interval=chance.interval,
    )
    if min(map(len, (*left, *right))) < 2:
        return found
    p_value = permutation_p(left, right)
    interval = _interval(left, right, average)
    lowest = lowest_p([(len(x), len(y)) for x, y in zip(left, right, strict=True)])
    return replace(found, interval=interval, p_value=p_value, p_adjusted=p_value, p_lowest=lowest)


def adjust(pairs: Sequence[Difference]) -> list[Difference]:
    """Differences that are looked at together: the more there are, the more of them look clear by luck."""
    adjusted = holm([pair.p_value for pair in pairs])
    many = len(pairs)
    return [
        replace(pair, p_adjusted=adjusted[index], p_lowest=min(1.0, pair.p_lowest * many), comparisons=many)
        for index, pair in enumerate(pairs)
    ]


def runs_needed(comparisons: int) -> int:
    """The fewest runs in each of two groups with which a difference can be clear at all."""
    return next(n for n in range(2, MOST_NEEDED) if lowest_p([(n, n)]) * comparisons < LEVEL)


def _interval(left: Strata, right: Strata, average: str) -> Interval:
    value_of = AVERAGES[average]
    samples_a = resampled(left, value_of, fresh_draws(left))
    samples_b = resampled(right, value_of, fresh_draws(right, np.random.default_rng(1)))
    times = min(len(samples_a), len(samples_b))
    return percentile_interval(samples_a[:times] - samples_b[:times])
