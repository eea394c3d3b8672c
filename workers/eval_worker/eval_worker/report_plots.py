"""The report's plots, as SVG: a line per operator or pair, a dot per seed, a bar for the 95 % interval."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from mosaic_sdk.results.wording import bracket, number

from eval_worker.report_markup import Html, element

WIDTH, LEFT, RIGHT = 760, 170, 24
ROW, TOP, BOTTOM = 46, 10, 40
LONGEST_LABEL = 22
MOST_DOTS = 400  # of one line


class Line(NamedTuple):
    """One line of a plot."""

    label: str
    colour: str
    dots: Sequence[tuple[str, float]]  # (what it is, value)
    mean: float | None
    interval: Sequence[float] | None


def plot(lines: Sequence[Line], axis: str, has_zero: bool = False) -> Html:
    """`has_zero`: with a dashed line at 0, for differences."""
    low, high = _range(lines, has_zero)
    height = TOP + ROW * len(lines) + BOTTOM
    parts = [_grid(low, high, height), *([_zero(low, high, height)] if has_zero else [])]
    parts += [_line(line, TOP + ROW * index + ROW / 2, low, high) for index, line in enumerate(lines)]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, height - 6, axis, "middle", "tick"))
    described = f"{axis}: {'; '.join(_described(line) for line in lines)}"
    return element("svg", *parts, viewBox=f"0 0 {WIDTH} {height}", role="img", aria_label=described)


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers between two numbers: multiples of 1, 2 or 5 times a power of ten."""
    step = 10.0 ** math.floor(math.log10((high - low) / about))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= about)
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 12) + 0.0 for index in range(first, math.floor(high / step + 1e-9) + 1)]


def _range(lines: Sequence[Line], has_zero: bool) -> tuple[float, float]:
    values = [value for line in lines for _, value in line.dots]
    values += [edge for line in lines for edge in line.interval or ()] + ([0.0] if has_zero else [])
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    margin = (high - low) * 0.05 or max(abs(low), 1.0) * 0.1
    return max(low - margin, -1e300), min(high + margin, 1e300)


def _x(value: float, low: float, high: float) -> float:
    return round(LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT), 1)


def _grid(low: float, high: float, height: int) -> Html:
    parts = []
    for value in ticks(low, high):
        x = _x(value, low, high)
        parts.append(element("line", x1=x, x2=x, y1=TOP, y2=height - BOTTOM, class_="grid"))
        parts.append(_text(x, height - BOTTOM + 15, number(value), "middle", "tick"))
    return element("g", *parts)


def _zero(low: float, high: float, height: int) -> Html:
    x = _x(0.0, low, high)
    return element("line", x1=x, x2=x, y1=TOP, y2=height - BOTTOM, class_="zero")


def _line(line: Line, y: float, low: float, high: float) -> Html:
    label = line.label if len(line.label) <= LONGEST_LABEL else line.label[: LONGEST_LABEL - 1] + "…"
    parts = [element("title", _described(line)), _text(LEFT - 12, y + 4, label, "end")]
    every = max(1, math.ceil(len(line.dots) / MOST_DOTS))
    for index, (what, value) in enumerate(line.dots[::every]):
        dot = element("title", f"{what}: {number(value)}")
        at = {"cx": _x(value, low, high), "cy": round(y + _jitter(index), 1)}
        parts.append(element("circle", dot, r=3.2, fill=line.colour, fill_opacity=0.55, **at))
    if line.interval:
        left, right = (_x(edge, low, high) for edge in line.interval)
        width = round(max(right - left, 2), 1)
        parts.append(element("rect", x=left, y=y - 3, width=width, height=6, rx=3, fill=line.colour))
    if line.mean is not None:
        x = _x(line.mean, low, high)
        parts.append(element("path", d=f"M{x} {y - 8} l5 8 l-5 8 l-5 -8 z", fill=line.colour, class_="mean"))
    return element("g", *parts)


def _jitter(index: int) -> float:
    """A height within the line: spread evenly, and the same in every report."""
    return ((index * 0.618034) % 1 - 0.5) * (ROW - 20)


def _described(line: Line) -> str:
    return f"{line.label} {number(line.mean)} {bracket(list(line.interval) if line.interval else None)}".rstrip()


def _text(x: float, y: float, words: str, anchor: str, kind: str | None = None) -> Html:
    return element("text", words, x=x, y=y, text_anchor=anchor, class_=kind)
