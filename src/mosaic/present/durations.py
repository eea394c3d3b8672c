"""Durations as users read and write them: 7s, 3m20s, 2h05m, 4d11h."""

import re
from decimal import Decimal

SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(min|[smhdw])")


def format_duration(seconds: float) -> str:
    """The duration in at most two units: 7s, 3m20s, 2h05m, 4d11h."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def parse_duration(text: str) -> float:
    """The seconds in 90, 45s, 2h or 1h30m; a number without a unit is in seconds. ValueError with a message."""
    compact = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", compact):
        return float(compact)
    parts = _PART.findall(compact)
    if not parts or _PART.sub("", compact).strip():
        raise ValueError(f"'{text}' is not a valid duration. Write it as 90s, 45m, 2h, 1h30m or 30d.")
    return sum(float(number) * SECONDS[unit] for number, unit in parts)


def spell_duration(seconds: float) -> str:
    """The text that `parse_duration` turns into exactly these seconds: 1h30m, 90.5."""
    if seconds != int(seconds) or seconds <= 0:
        return format(Decimal(repr(float(seconds))), "f").removesuffix(".0")
    whole, parts = int(seconds), []
    for unit in ("d", "h", "m", "s"):
        count, whole = divmod(whole, SECONDS[unit])
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts)
