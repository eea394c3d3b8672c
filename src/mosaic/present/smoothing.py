"""Exponential smoothing, with the correction for the first values that TensorBoard and W&B apply as well."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_WEIGHT = 0.999
_GROWTH = 1e30  # how far weights may grow within a block before they lose precision


def smooth(values: Floats, weight: float) -> Floats:
    """Each value mixed with those before it; `weight` between 0 (unchanged) and 1.

    1. A constant stays what it is. 2. A value that is not finite stays a gap and does not count. 3. The first value is
    not drawn towards zero: the mean is divided by the weights that it has so far.
    """
    weight = min(max(weight, 0.0), MOST_WEIGHT)
    is_number = np.isfinite(values)
    if not weight or not is_number.any():
        return np.where(is_number, values, np.nan)
    numbers = values[is_number]
    smoothed = np.full(len(values), np.nan)
    # Relative to one of its values, a constant is exactly zero and stays exact.
    origin = numbers[0]
    smoothed[is_number] = origin + _debiased(numbers - origin, weight)
    return smoothed


def _debiased(values: Floats, weight: float) -> Floats:
    means = _means(values, weight)
    # After these, the weights add up to 1 within the precision of float64.
    first = means[: int(math.log(1e-17) / math.log(weight)) + 1]
    first /= 1.0 - weight ** np.arange(1, len(first) + 1)
    return means


def _means(values: Floats, weight: float) -> Floats:
    """m[i] = weight · m[i-1] + (1 - weight) · values[i], with m[-1] = 0, without a Python loop over the values.

    Within a block, m[i] = weight^i · Σ (1 - weight) · values[j] / weight^j. Only the ends of blocks are carried on.
    """
    size = max(1, min(len(values), int(math.log(_GROWTH) / -math.log(weight))))
    count = -(-len(values) // size)
    blocks = np.zeros((count, size))
    blocks.flat[: len(values)] = values
    powers = weight ** np.arange(size)
    blocks = np.cumsum(blocks / powers * (1.0 - weight), axis=1) * powers
    carry, share = 0.0, float(weight**size)
    carries = np.empty(count)
    for index, end in enumerate(blocks[:, -1]):
        carries[index] = carry
        carry = float(end) + share * carry
    return (blocks + carries[:, None] * (powers * weight)).ravel()[: len(values)]
