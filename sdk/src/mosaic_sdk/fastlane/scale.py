"""Shrinks frames: each pixel of the result is the mean of the area it covers."""

from typing import Any

import numpy as np


def shrink(frame: Any, max_dim: int) -> Any:
    """`frame` with no side over `max_dim`, its proportions kept; unchanged if it fits or `max_dim` is 0."""
    height, width = frame.shape[:2]
    longest = max(height, width)
    if not max_dim or longest <= max_dim:
        return frame
    rows = _mean_areas(frame, max(1, round(height * max_dim / longest)))
    columns = _mean_areas(rows.swapaxes(0, 1), max(1, round(width * max_dim / longest)))
    return (columns.swapaxes(0, 1) + 0.5).astype(np.uint8)


def _mean_areas(image: Any, size: int) -> Any:
    """Reduce to `size` rows: differences of the integral at the edges of the new rows, which may divide pixels."""
    count = image.shape[0]
    integral = np.zeros((count + 1, *image.shape[1:]), np.float32)
    np.cumsum(image, axis=0, dtype=np.float32, out=integral[1:])
    edges = np.linspace(0, count, size + 1)
    below = np.minimum(edges.astype(int), count - 1)
    part = (edges - below).astype(np.float32).reshape(-1, *[1] * (image.ndim - 1))
    at_edges = integral[below] * (1 - part) + integral[below + 1] * part
    return np.diff(at_edges, axis=0) * np.float32(size / count)
