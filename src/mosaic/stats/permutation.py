"""The rank test of Mann, Whitney and Wilcoxon, as a permutation test: how often chance alone does as well.

What is tested is the probability of improvement: how often a random division of the same runs into two groups has one
at least as far from 0.5. Only the order of the values counts, so one run with an extreme value does not decide.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from mosaic_sdk.results.resampling import RESAMPLES, SEED

from mosaic.stats.averages import Floats, Strata

MOST_EXACT = 20_000  # ways to divide the runs, all of which are tried
ROUNDING = 1e-9


def permutation_p(left: Strata, right: Strata) -> float:
    """The two-sided p-value; runs are exchanged within their environment only."""
    sizes = [(len(x), len(y)) for x, y in zip(left, right, strict=True)]
    ranks = [midranks(np.concatenate(pair)) for pair in zip(left, right, strict=True)]
    observed = abs(float(_distance([r[:n] for r, (n, _) in zip(ranks, sizes, strict=True)], sizes))) - ROUNDING
    if ways(sizes) <= MOST_EXACT:
        return float(np.mean(np.abs(_every(ranks, sizes)) >= observed))
    hits = int(np.sum(np.abs(_sampled(ranks, sizes)) >= observed))
    return (hits + 1) / (RESAMPLES + 1)  # the observed division is one of the possible ones


def ways(sizes: Sequence[tuple[int, int]]) -> int:
    """In how many ways the runs can be divided into two groups of the same sizes."""
    return math.prod(math.comb(n + m, n) for n, m in sizes)


def lowest_p(sizes: Sequence[tuple[int, int]]) -> float:
    """The smallest p-value that so many runs can have, however far apart they are."""
    return min(1.0, 2 / ways(sizes))


def midranks(values: Floats) -> Floats:
    """1, 2, 3 … in the order of the values; equal ones share the mean of their places."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[group], np.float64)


def _distance(chosen: Strata, sizes: Sequence[tuple[int, int]]) -> Floats:
    """Probability of improvement - 0.5, from the ranks of the first group, which are in the last axis."""
    parts = [
        (np.sum(ranks, axis=-1) - n * (n + 1) / 2) / (n * m) - 0.5 for ranks, (n, m) in zip(chosen, sizes, strict=True)
    ]
    return np.asarray(np.mean(parts, axis=0))


def _every(ranks: Sequence[Floats], sizes: Sequence[tuple[int, int]]) -> Floats:
    """Every division of one environment with every division of the others."""
    chosen = [
        each[np.array(list(itertools.combinations(range(n + m), n)))] for each, (n, m) in zip(ranks, sizes, strict=True)
    ]
    places = np.indices([len(each) for each in chosen]).reshape(len(chosen), -1)
    return _distance([each[place] for each, place in zip(chosen, places, strict=True)], sizes)


def _sampled(ranks: Sequence[Floats], sizes: Sequence[tuple[int, int]]) -> Floats:
    generator = np.random.default_rng(SEED)
    shuffled = [generator.permuted(np.broadcast_to(each, (RESAMPLES, len(each))), axis=1) for each in ranks]
    return _distance([each[:, :n] for each, (n, _) in zip(shuffled, sizes, strict=True)], sizes)
