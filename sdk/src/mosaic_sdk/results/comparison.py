"""Two operators on equal seeds: the paired difference, its interval, and how often one is better than the other."""

import math
from bisect import bisect_left, bisect_right
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, Hashable, List, Mapping, Optional, Sequence

from mosaic_sdk.results.averages import mean
from mosaic_sdk.results.resampling import Interval, holm, mean_interval, sign_flip_p

LEVEL = 0.05

Scores = Mapping[Hashable, float]  # the mean return on each seed


@dataclass(frozen=True)
class Comparison:
    """What the seeds that both have played say about `a` and `b`. A positive difference means that `a` is better."""

    a: str
    b: str
    n: int  # common seeds
    difference: Optional[float]  # of the means; None without a common seed
    interval: Optional[Interval]  # 95 %; None with fewer than two common seeds
    probability: Optional[float]  # that `a` scores higher than `b`, each on a seed drawn at random; ties count half
    wins: int  # seeds on which `a` is better
    ties: int
    losses: int
    p_value: float = 1.0
    p_adjusted: float = 1.0  # by Holm's method, for all comparisons made together

    @property
    def is_clear(self) -> bool:
        """Whether the difference is more than luck: the interval excludes 0, and so does the test, adjusted."""
        return self.excludes_zero and self.p_adjusted < LEVEL

    @property
    def excludes_zero(self) -> bool:
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)

    def to_dict(self) -> Dict[str, Any]:
        plain = asdict(self)
        plain["interval"] = None if self.interval is None else list(self.interval)
        return {**plain, "clear": self.is_clear}


def compare(a: str, scores_a: Scores, b: str, scores_b: Scores) -> Comparison:
    """Compare on the seeds that both have; the scores of other seeds are not used."""
    common = [seed for seed in scores_a if seed in scores_b and math.isfinite(scores_a[seed] - scores_b[seed])]
    pairs = [(scores_a[seed], scores_b[seed]) for seed in common]
    differences = [x - y for x, y in pairs]
    p_value = sign_flip_p(differences)
    return Comparison(
        a=a,
        b=b,
        n=len(pairs),
        difference=mean(differences) if pairs else None,
        interval=mean_interval(differences),
        probability=probability_of_improvement([x for x, _ in pairs], [y for _, y in pairs]) if pairs else None,
        wins=sum(x > y for x, y in pairs),
        ties=sum(x == y for x, y in pairs),
        losses=sum(x < y for x, y in pairs),
        p_value=p_value,
        p_adjusted=p_value,  # alone, until `adjust` knows of others
    )


def adjust(pairs: Sequence[Comparison]) -> List[Comparison]:
    """Comparisons that are made together: the more there are, the more of them look clear by luck."""
    adjusted = holm([pair.p_value for pair in pairs])
    return [replace(pair, p_adjusted=adjusted[index]) for index, pair in enumerate(pairs)]


def probability_of_improvement(left: Sequence[float], right: Sequence[float]) -> float:
    """The share of all pairs (x of `left`, y of `right`) with x > y; equal ones count half."""
    ordered = sorted(right)
    below = sum(bisect_left(ordered, x) + bisect_right(ordered, x) for x in left)
    return below / (2 * len(left) * len(right))
