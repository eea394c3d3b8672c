"""Stratified bootstrap: the runs of each environment are drawn again, with replacement.

The generator is seeded: equal numbers give equal results.
"""

from collections.abc import Sequence

import numpy as np
from mosaic_sdk.results.resampling import SEED, resamples_for
from numpy.typing import NDArray

from mosaic.stats.averages import Average, Floats, Strata

Draws = Sequence[NDArray[np.int64]]  # for each stratum: resamples × runs, indexes of runs
EDGES = (2.5, 97.5)  # of a 95 % interval, in percent


def draw(sizes: Sequence[int], times: int, generator: np.random.Generator) -> list[NDArray[np.int64]]:
    return [generator.integers(0, size, (times, size)) for size in sizes]


def fresh_draws(strata: Strata, generator: np.random.Generator | None = None) -> list[NDArray[np.int64]]:
    sizes = [len(values) for values in strata]
    return draw(sizes, resamples_for(sum(sizes)), generator or np.random.default_rng(SEED))


def resampled(strata: Strata, average: Average, draws: Draws) -> Floats:
    """The average of every resample."""
    return average([values[indexes] for values, indexes in zip(strata, draws, strict=True)])


def percentile_interval(samples: Floats) -> tuple[float, float]:
    low, high = np.percentile(samples, EDGES)
    return float(low), float(high)


def counts(indexes: NDArray[np.int64], size: int) -> Floats:
    """How often each resample has each run: resamples × runs."""
    times = len(indexes)
    places = indexes + np.arange(times)[:, None] * size
    return np.bincount(places.ravel(), minlength=times * size).reshape(times, size).astype(np.float64)
