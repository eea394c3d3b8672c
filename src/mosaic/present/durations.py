"""Durations as users read and write them: 7s, 3m20s, 2h05m, 4d11h."""

from decimal import Decimal

from mosaic.model.durations import SECONDS, parse_duration

__all__ = ["SECONDS", "format_duration", "parse_duration", "spell_duration"]


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


def spell_duration(seconds: float) -> str:
    """The text that `parse_duration` turns into exactly these seconds: 1h30m, 90.5."""
    if seconds != int(seconds) or seconds <= 0:
        return format(Decimal(repr(float(seconds))), "f").removesuffix(".0")
    whole, parts = int(seconds), []
    for unit in ("d", "h", "m", "s"):
        count, whole = divmod(whole, SECONDS[unit])
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts)
