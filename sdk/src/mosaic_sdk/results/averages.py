"""Averages of a few numbers. NaN stands for an average of nothing."""

import math
from typing import Sequence


def mean(values: Sequence[float]) -> float:
    if not values:
        return math.nan
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # the sum is too large for a float, the mean is not
        return math.fsum(value / len(values) for value in values)
    except ValueError:  # Infinity and -Infinity
        return math.nan


def spread(values: Sequence[float]) -> float:
    """The population standard deviation."""
    middle = mean(values)
    try:
        return math.sqrt(mean([(value - middle) ** 2 for value in values]))
    except OverflowError:  # a square is too large for a float
        return math.hypot(*(value - middle for value in values)) / math.sqrt(len(values))


def iqm(values: Sequence[float]) -> float:
    """The interquartile mean: the mean without the lowest and the highest quarter, each rounded down."""
    cut = len(values) // 4
    return mean(sorted(values)[cut : len(values) - cut])


def quantile(ordered: Sequence[float], fraction: float) -> float:
    """The quantile of sorted numbers, interpolated between the two nearest ones."""
    position = fraction * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
