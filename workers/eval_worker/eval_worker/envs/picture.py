"""Frames as PNG, for operators that look at pictures."""

import base64
import io
from typing import Any

import numpy as np
from PIL import Image


def as_png(frame: Any) -> str:
    """The frame as PNG in base64."""
    file = io.BytesIO()
    # Level 1: a frame of a game compresses almost as well as with more effort, and a decision waits for it.
    Image.fromarray(np.ascontiguousarray(frame, dtype=np.uint8)).save(file, "PNG", compress_level=1)
    return base64.b64encode(file.getvalue()).decode("ascii")
