"""Bootstrap intervals and randomisation tests. The generator is seeded: equal numbers give equal results."""

import itertools
import math
from operator import getitem
from random import Random
from typing import Iterator, List, Optional, Sequence, Tuple

from mosaic_sdk.results.averages import mean, quantile, spread

Interval = Tuple[float, float]

RESAMPLES = 10_000
FEWEST = 1_000
MOST_DRAWS = 2_000_000  # of one interval, about 0.1 s: with more than 200 values, there are fewer resamples
LARGE = 500  # from here on the mean is normally distributed for every practical purpose
SEED = 0
BYTE = 256
BLOCK = 1 << 16  # random bytes made at once
_Z = 1.959964  # the 97.5 % quantile of the normal distribution


def resamples_for(count: int) -> int:
    return max(FEWEST, min(RESAMPLES, MOST_DRAWS // max(count, 1)))


def mean_interval(values: Sequence[float]) -> Optional[Interval]:
    """The 95 % percentile bootstrap interval of the mean; None for fewer than two values."""
    n = len(values)
    if n < 2:
        return None
    if min(values) == max(values):
        return values[0], values[0]
    if n > LARGE:
        half = _Z * spread(values) / math.sqrt(n)
        return mean(values) - half, mean(values) + half
    ordered = sorted(_resampled_means(values))
    return quantile(ordered, 0.025), quantile(ordered, 0.975)


def _resampled_means(values: Sequence[float]) -> List[float]:
    n = len(values)
    shares = [value / n for value in values]  # divided first: a sum of large returns may overflow
    return [math.fsum(map(shares.__getitem__, indexes)) for indexes in _draws(n, resamples_for(n))]


def _draws(n: int, times: int) -> Iterator[Sequence[int]]:
    """`times` times n indexes below n, the same in every version of Python, which Random.choices does not promise."""
    random = Random(SEED)
    if n > BYTE:
        yield from ([int(random.random() * n) for _ in range(n)] for _ in range(times))
        return
    # Four times as fast: random bytes, of which the highest are dropped so that every remainder is equally likely.
    remainders, dropped = bytes(value % n for value in range(BYTE)), bytes(range(BYTE - BYTE % n, BYTE))
    pool, at = b"", 0
    for _ in range(times):
        while len(pool) - at < n:
            pool, at = pool[at:] + random.randbytes(BLOCK).translate(remainders, dropped), 0
        yield pool[at : at + n]
        at += n


def sign_flip_p(differences: Sequence[float]) -> float:
    """The two-sided p-value of a mean difference: how often random signs give one at least as far from 0."""
    moved = [value for value in differences if value]
    if not moved:
        return 1.0
    largest = max(map(abs, moved))
    scaled = [value / largest for value in moved]
    observed = abs(math.fsum(scaled)) - 1e-9  # sums that are equal but for rounding count as equal
    if 2 ** len(scaled) <= RESAMPLES:
        sums = [abs(math.fsum(signed)) for signed in itertools.product(*((value, -value) for value in scaled))]
        return sum(value >= observed for value in sums) / len(sums)
    return _sampled_p(scaled, observed)


def _sampled_p(scaled: Sequence[float], observed: float) -> float:
    # Each random byte gives the signs of eight differences, whose sums are computed once.
    sums = [_signed_sums(scaled[start : start + 8]) for start in range(0, len(scaled), 8)]
    random, tries, hits = Random(SEED), resamples_for(len(scaled)), 0
    for _ in range(tries):
        hits += abs(math.fsum(map(getitem, sums, random.randbytes(len(sums))))) >= observed
    return (hits + 1) / (tries + 1)  # the observed signs are one of the possible ones


def _signed_sums(values: Sequence[float]) -> List[float]:
    """The sum for each of the 256 ways in which a byte's bits are the signs of at most eight values."""
    return [
        math.fsum(value if signs >> place & 1 else -value for place, value in enumerate(values))
        for signs in range(BYTE)
    ]


def holm(p_values: Sequence[float]) -> List[float]:
    """The p-values of one family of comparisons, adjusted by Holm's method."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, p_values[index] * (len(p_values) - rank)))
        adjusted[index] = highest
    return adjusted
