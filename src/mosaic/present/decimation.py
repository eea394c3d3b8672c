"""A long curve in about two points per pixel column, so that a toolkit never sees millions of points."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def visible(x: Floats, left: float, right: float) -> slice:
    """The points between `left` and `right`, and one on either side, so that a line leaves the picture at its edge."""
    first = int(np.searchsorted(x, left, "left"))
    end = int(np.searchsorted(x, right, "right"))
    return slice(max(0, first - 1), min(len(x), end + 1))


def decimate(x: Floats, y: Floats, columns: int) -> tuple[Floats, Floats]:
    """The lowest and the highest value of each of `columns` equal parts of the x range, in the order of x.

    1. The first and the last point stay. 2. A part without a number becomes one NaN, which is a gap. 3. A curve with
    no more than four points per column is returned unchanged. `x` must be sorted.
    """
    if len(x) <= 4 * columns:
        return x, y
    starts = _starts(x, columns)
    low, high = np.fmin.reduceat(y, starts), np.fmax.reduceat(y, starts)
    ends = np.append(starts[1:], len(x)) - 1
    across = _interleave(x[starts], x[ends])
    up = _interleave(low, high)
    return np.concatenate((x[:1], across, x[-1:])), np.concatenate((y[:1], up, y[-1:]))


def decimate_band(x: Floats, low: Floats, high: Floats, columns: int) -> tuple[Floats, Floats, Floats]:
    """The lowest low and the highest high of each column."""
    if len(x) <= 2 * columns:
        return x, low, high
    starts = _starts(x, columns)
    return x[starts], np.fmin.reduceat(low, starts), np.fmax.reduceat(high, starts)


def shares(x: Floats, y: Floats, most: int) -> tuple[Floats, Floats]:
    """Means of at most `most` equal shares of the points, each at its last x. A share without a number is NaN."""
    if len(x) <= most:
        return x, y
    starts = np.linspace(0, len(x), most, endpoint=False).astype(np.intp)
    is_number = np.isfinite(y)
    totals = np.add.reduceat(np.where(is_number, y, 0.0), starts)
    counts = np.add.reduceat(is_number.astype(np.float64), starts)
    means = np.full(len(starts), np.nan)
    np.divide(totals, counts, out=means, where=counts > 0)
    return x[np.append(starts[1:], len(x)) - 1], means


def _starts(x: Floats, columns: int) -> NDArray[np.intp]:
    """Where each column begins among the points. Columns without points are left out."""
    edges = np.linspace(x[0], x[-1], columns, endpoint=False)
    starts = np.searchsorted(x, edges, "left")
    starts[0] = 0
    return np.unique(starts)


def _interleave(first: Floats, second: Floats) -> Floats:
    both = np.empty(2 * len(first))
    both[0::2], both[1::2] = first, second
    return both
