"""Averages of the runs of a group. A group is a list of strata: the values of its runs, by environment.

With one environment the median is the median of the runs. With several it is the median over the environments of their
means, as in rliable, and in the mean every environment counts once.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Strata = Sequence[Floats]
Average = Callable[[Strata], Floats]  # of the last axis; the axes before it are resamples


def mean(strata: Strata) -> Floats:
    return np.asarray(np.mean([np.mean(values, axis=-1) for values in strata], axis=0))


def median(strata: Strata) -> Floats:
    if len(strata) == 1:
        return np.asarray(np.median(strata[0], axis=-1))
    return np.asarray(np.median([np.mean(values, axis=-1) for values in strata], axis=0))


def iqm(strata: Strata) -> Floats:
    """The interquartile mean: the mean of all runs without the lowest and the highest quarter, each rounded down."""
    every = np.sort(np.concatenate(strata, axis=-1), axis=-1)
    cut = every.shape[-1] // 4
    return np.asarray(np.mean(every[..., cut : every.shape[-1] - cut], axis=-1))


def optimality_gap(strata: Strata, target: float = 1.0) -> Floats:
    """By how much the runs fall short of `target` on average; a run beyond it counts as one that reaches it."""
    return target - mean([np.minimum(values, target) for values in strata])


AVERAGES: dict[str, Average] = {"iqm": iqm, "mean": mean, "median": median}
TITLES = {"iqm": "IQM", "mean": "mean", "median": "median", "optimality_gap": "optimality gap"}


def order_weights(average: str, count: int) -> Floats:
    """The weights with which `count` sorted values add up to their average."""
    weights = np.zeros(count)
    cut = {"mean": 0, "iqm": count // 4, "median": (count - 1) // 2}[average]
    weights[cut : count - cut] = 1.0 / (count - 2 * cut)
    return weights
