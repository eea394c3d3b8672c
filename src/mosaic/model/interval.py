"""How sure a mean of few numbers is."""

import math
import statistics
from collections.abc import Sequence

# Student's t for a two-sided 95 % interval, by degrees of freedom from 1 on; beyond, the series around the normal one.
_T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
_Z_95 = 1.95996


def mean_and_interval(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and half the width of its 95 % confidence interval; a single number has none."""
    mean, n = statistics.fmean(values), len(values)
    if n < 2:
        return mean, None
    return mean, _t_95(n - 1) * statistics.stdev(values) / math.sqrt(n)


def _t_95(freedom: int) -> float:
    if freedom <= len(_T_95):
        return _T_95[freedom - 1]
    return _Z_95 + (_Z_95**3 + _Z_95) / (4 * freedom) + (5 * _Z_95**5 + 16 * _Z_95**3 + 3 * _Z_95) / (96 * freedom**2)
