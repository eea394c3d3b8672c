"""Documents without the numbers that JSON does not have."""

import math
from typing import Any


def finite(value: Any) -> Any:
    """The value with null for NaN and the infinities."""
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
