"""Curves of several runs as one: their average at each step of a common grid, with a band around it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mosaic_sdk.results.resampling import SEED

from mosaic.stats.averages import AVERAGES, Floats, order_weights
from mosaic.stats.resampling import EDGES, draw, resampled
from mosaic.stats.traces import Trace, on_grid

RESAMPLES = 1000
STRATIFIED_POINTS = 200  # each has resamples of its own
BOOTSTRAP, QUARTILES = "bootstrap", "quartiles"
BANDS = {BOOTSTRAP: "95 % bootstrap interval", QUARTILES: "from the lower to the upper quartile of the runs"}


@dataclass(frozen=True)
class Band:
    """`low` and `high` are NaN where there are fewer than two runs, and `middle` where there is none."""

    step: Floats
    middle: Floats
    low: Floats
    high: Floats
    runs: Floats  # how many there are at each step


def band_of(traces: Sequence[Trace], grid: Floats, average: str = "iqm", kind: str = BOOTSTRAP) -> Band:
    rows = np.sort([on_grid(trace, grid) for trace in traces], axis=0)  # each step on its own; NaN comes last
    runs = np.sum(np.isfinite(rows), axis=0)
    middle, low, high = (np.full(len(grid), np.nan) for _ in range(3))
    for many in np.unique(runs[runs > 0]):
        here = runs == many
        values = rows[:many, here]
        middle[here] = order_weights(average, many) @ values
        if many > 1:
            low[here], high[here] = _edges(values, average, kind)
    return Band(grid, middle, low, high, runs.astype(np.float64))


def stratified_band(strata: Sequence[Sequence[Trace]], grid: Floats, average: str, kind: str = BOOTSTRAP) -> Band:
    """Of runs in several environments, whose values can be put together. The grid lies within all of them.

    As for the averages of single values: the runs of each environment are drawn again apart from the others.
    """
    rows = [np.array([on_grid(trace, grid) for trace in traces]).T for traces in strata]  # steps × runs
    every = np.concatenate(rows, axis=1)
    if kind == QUARTILES:
        low, high = np.percentile(every, (25.0, 75.0), axis=1)
    else:
        draws = draw([each.shape[1] for each in rows], RESAMPLES, np.random.default_rng(SEED))
        steps = [[each[step] for each in rows] for step in range(len(grid))]
        low, high = np.array([np.percentile(resampled(each, AVERAGES[average], draws), EDGES) for each in steps]).T
    return Band(grid, AVERAGES[average](rows), low, high, np.full(len(grid), float(every.shape[1])))


def _edges(values: Floats, average: str, kind: str) -> Floats:
    """`values`: runs × steps, sorted within each step."""
    if kind == QUARTILES:
        return np.asarray(np.percentile(values, (25.0, 75.0), axis=0))
    samples = values.T @ _resampled_weights(average, len(values)).T
    return np.asarray(np.percentile(samples, EDGES, axis=1))


def _resampled_weights(average: str, size: int) -> Floats:
    """The weights of sorted values in each resample.

    The band holds for each step on its own. So ranks are drawn instead of runs: which run has which rank makes no
    difference, and all steps share one matrix of weights, however the runs are ordered there.
    """
    (ranks,) = draw([size], RESAMPLES, np.random.default_rng(SEED))
    places = np.sort(ranks, axis=1) + np.arange(RESAMPLES)[:, None] * size
    weights = np.broadcast_to(order_weights(average, size), places.shape)
    found = np.bincount(places.ravel(), weights.ravel(), RESAMPLES * size).reshape(RESAMPLES, size)
    return np.asarray(found, np.float64)
