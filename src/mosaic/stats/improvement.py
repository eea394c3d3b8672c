"""Probability of improvement: how likely a run of one group has a higher value than a run of another, drawn at random.

Equal values count half. With several environments it is the mean over them.
"""

import numpy as np

from mosaic.stats.averages import Floats, Strata
from mosaic.stats.estimate import Estimate
from mosaic.stats.resampling import Draws, counts, fresh_draws, percentile_interval


def probability_of_improvement(
    left: Strata, right: Strata, draws_left: Draws | None = None, draws_right: Draws | None = None
) -> Estimate:
    wins = [_wins(x, y) for x, y in zip(left, right, strict=True)]
    value = float(np.mean([won.mean() for won in wins]))
    if min(map(len, (*left, *right))) < 2:
        return Estimate(value, None)
    generator = np.random.default_rng(1)
    pairs = zip(wins, draws_left or fresh_draws(left), draws_right or fresh_draws(right, generator), strict=True)
    samples = []
    for won, drawn_left, drawn_right in pairs:
        times = min(len(drawn_left), len(drawn_right))
        weights_left = counts(drawn_left[:times], won.shape[0]) / won.shape[0]
        weights_right = counts(drawn_right[:times], won.shape[1]) / won.shape[1]
        samples.append(np.sum(weights_left @ won * weights_right, axis=1))
    fewest = min(map(len, samples))
    return Estimate(value, percentile_interval(np.mean([sample[:fewest] for sample in samples], axis=0)))


def _wins(x: Floats, y: Floats) -> Floats:
    """1 where a run of `x` is higher than one of `y`, 0.5 where they are equal."""
    return np.asarray((x[:, None] > y[None, :]) + 0.5 * (x[:, None] == y[None, :]), np.float64)
