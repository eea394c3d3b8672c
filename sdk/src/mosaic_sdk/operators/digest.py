"""The digest of an observation, with which two processes find out whether they saw the same one.

It depends on the values alone: not on the classes of a library's version, not on dtypes. Floats are compared as 32-bit
ones, because a wrapper may have stored a 64-bit observation as such.
"""

import hashlib
import json
import math
import struct
from typing import Any, Mapping

LENGTH = 16


def observation_digest(observation: Any) -> str:
    """16 hex digits; equal observations have equal ones."""
    text = json.dumps(_canonical(observation), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def _canonical(value: Any) -> Any:
    if hasattr(value, "tolist"):
        numbers = value.tolist()
        # Arrays of integers are the large ones (images), and need no look at each element.
        return numbers if getattr(getattr(value, "dtype", None), "kind", "") in "iu" else _canonical(numbers)
    if isinstance(value, Mapping):
        return {str(key): _canonical(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(part) for part in value]
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, bool):
        return int(value)
    # Not the repr of an object: that may contain its address.
    return value if value is None or isinstance(value, (int, str)) else type(value).__name__


def _number(value: float) -> Any:
    if not math.isfinite(value):
        return repr(value)
    try:
        value = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        pass  # larger than any 32-bit float
    return int(value) if value.is_integer() else value
