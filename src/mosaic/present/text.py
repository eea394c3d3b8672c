"""Numbers in few characters, sparklines and bars, and text that is safe to show."""

import itertools
import math
import re
from collections.abc import Sequence

# Colours and cursor movements; titles and links, which end with BEL or ST; two-character sequences.
ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")
LEVELS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 20) -> str:
    """The values as at most `width` small bars, each the mean of its share; values that are not finite leave a gap."""
    shown = squeeze(values, width)
    finite = [value for value in shown if math.isfinite(value)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    return "".join(_level(value, low, high) for value in shown)


def squeeze(values: Sequence[float], width: int) -> list[float]:
    """The values, or the means of `width` equal shares if there are more."""
    if len(values) <= width:
        return list(values)
    edges = [len(values) * part // width for part in range(width + 1)]
    return [_mean(values[start:end]) for start, end in itertools.pairwise(edges)]


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else math.nan


def _level(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return " "
    if high == low:
        return LEVELS[3]
    return LEVELS[round((value - low) / (high - low) * (len(LEVELS) - 1))]


def bar(fraction: float, width: int = 12) -> str:
    """`━━━━━╌╌╌` for a fraction between 0 and 1."""
    full = round(min(1.0, max(0.0, fraction)) * width)
    return "━" * full + "╌" * (width - full)


def number(value: float | None) -> str:
    """A number in few characters: 12, 0.0312, 1.2M."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return str(value)
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if letter == 'k' else limit):.3g}{letter}"
    return f"{value:.4g}"


def size(count: float) -> str:
    """A number of bytes with a unit: 312 B, 4.1 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def printable(text: str) -> str:
    """The text without escape sequences and control characters, so that a worker cannot move the cursor."""
    if text.isprintable():
        return text  # nearly always; a list of runs calls this for every cell
    return "".join(letter if letter.isprintable() else " " for letter in ESCAPE.sub("", text))
