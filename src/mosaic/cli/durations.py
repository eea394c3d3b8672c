"""Durations as users write and read them: 90, 45s, 2h, 1h30m, 30d."""

import argparse
import re

SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
PART = re.compile(r"(\d+(?:\.\d+)?)\s*(min|[smhdw])")


def parse_duration(text: str) -> float:
    """The number of seconds; a number without a unit is in seconds."""
    compact = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", compact):
        return float(compact)
    parts = PART.findall(compact)
    if not parts or PART.sub("", compact).strip():
        raise argparse.ArgumentTypeError(f"'{text}' is not a valid duration. Write it as 90s, 45m, 2h, 1h30m or 30d.")
    return sum(float(number) * SECONDS[unit] for number, unit in parts)


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
