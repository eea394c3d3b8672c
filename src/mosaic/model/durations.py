"""Durations as users write them: 90, 45s, 2h, 1h30m."""

import re

SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(min|[smhdw])")


def parse_duration(text: str) -> float:
    """The seconds in 90, 45s, 2h or 1h30m; a number without a unit is in seconds. ValueError with a message."""
    compact = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", compact):
        return float(compact)
    parts = _PART.findall(compact)
    if not parts or _PART.sub("", compact).strip():
        raise ValueError(f"'{text}' is not a valid duration. Write it as 90s, 45m, 2h, 1h30m or 30d.")
    return sum(float(number) * SECONDS[unit] for number, unit in parts)
