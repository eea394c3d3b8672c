"""Performance profiles: for each threshold, the share of runs above it."""

from dataclasses import dataclass

import numpy as np
from mosaic_sdk.results.resampling import SEED

from mosaic.stats.averages import Floats, Strata
from mosaic.stats.resampling import EDGES, Draws, counts, draw

THRESHOLDS = 101
RESAMPLES = 2000


@dataclass(frozen=True)
class Profile:
    thresholds: Floats
    share: Floats  # of the runs with a value above the threshold; each environment counts once
    low: Floats | None  # the 95 % band, threshold by threshold; None with fewer than two runs
    high: Floats | None


def thresholds_for(groups: "list[Strata]", points: int = THRESHOLDS) -> Floats:
    """From the lowest to the highest value of all groups."""
    every = np.concatenate([values for strata in groups for values in strata])
    return np.linspace(every.min(), every.max(), points)


def profile(strata: Strata, thresholds: Floats, draws: Draws | None = None) -> Profile:
    above = [np.asarray(values[:, None] > thresholds[None, :], np.float64) for values in strata]
    share = np.asarray(np.mean([each.mean(axis=0) for each in above], axis=0))
    if min(map(len, strata)) < 2:
        return Profile(thresholds, share, None, None)
    drawn = draws or draw([len(values) for values in strata], RESAMPLES, np.random.default_rng(SEED))
    samples = np.mean(
        [counts(each, len(values)) @ values / len(values) for each, values in zip(drawn, above, strict=True)], axis=0
    )
    low, high = np.percentile(samples, EDGES, axis=0)
    return Profile(thresholds, share, low, high)
