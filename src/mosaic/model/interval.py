"""Confidence intervals of a mean of few numbers."""

import math
import statistics
from collections.abc import Sequence

# The 97.5 % quantiles of Student's t, for 1 … 30 degrees of freedom.
_T = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
_Z = 1.959964  # the same quantile of the normal distribution


def mean_and_interval(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and half the width of its 95 % confidence interval; None for a single number."""
    mean, n = statistics.fmean(values), len(values)
    if n < 2:
        return mean, None
    return mean, t_quantile(n - 1) * statistics.stdev(values) / math.sqrt(n)


def t_quantile(freedom: int) -> float:
    """Half the width of a 95 % confidence interval, in standard errors of the mean."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    # The first terms of the expansion of Student's t around the normal distribution: exact to four digits here.
    return _Z + (_Z**3 + _Z) / (4 * freedom) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom * freedom)
