"""The range of values that an axis shows."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Range = tuple[float, float]

EMPTY: Range = (0.0, 1.0)
LARGEST = 1e100  # beyond it, and below its inverse, the arithmetic of a drawing overflows
MARGIN = 0.06  # of the range, above and below a curve


def span(parts: "list[Floats]") -> Range | None:
    """The lowest and highest finite number among all parts; None if there is none."""
    finite = [part[np.isfinite(part)] for part in parts]
    finite = [part for part in finite if len(part)]
    if not finite:
        return None
    return float(min(part.min() for part in finite)), float(max(part.max() for part in finite))


def x_range(found: Range | None) -> Range:
    """From the first to the last point; a single point lies in the middle."""
    if found is None:
        return EMPTY
    low, high = found
    if high > low:
        return low, high
    room = max(1.0, abs(low) * 0.05)
    return low - room, low + room


def y_range(found: Range | None) -> Range:
    """With a margin. A constant gets a range of its own size, so that rounding errors do not look like a curve."""
    if found is None:
        return EMPTY
    low, high = found
    size = max(abs(low), abs(high))
    if high - low <= max(size * 1e-9, 1 / LARGEST):
        room = size * 0.5 if size > 1 / LARGEST else 1.0
        return low - room, high + room
    room = (high - low) * MARGIN
    return low - room, high + room
