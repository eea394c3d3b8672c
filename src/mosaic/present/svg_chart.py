"""Charts of a report, as SVG: curves with bands, and a line of dots for each group."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from mosaic_sdk.results.wording import bracket, number
from numpy.typing import NDArray

from mosaic.present.axes import nice_step
from mosaic.present.markup import Html, element, join
from mosaic.present.text import number as short

# Okabe and Ito's palette, which people with a colour vision deficiency can tell apart; dashes from the eighth on.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C")
DASHES = (None, "7 4", "2 3", "8 3 2 3")
WIDTH, HEIGHT = 860, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 12, 46
MOST_POINTS = 600  # of one line: more than a screen shows
ROW = 44
LABEL = 190

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    label: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None


class Dots(NamedTuple):
    """A group in a chart of values."""

    label: str
    values: Sequence[tuple[str, float]]  # (which run, value)
    middle: float | None
    interval: Sequence[float] | None


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def curve_chart(curves: Sequence[Curve], x_title: str, y_title: str, is_stepped: bool = False) -> Html | None:
    """None if there is nothing to draw. `is_stepped`: values hold until the next x."""
    drawn = [curve for curve in curves if np.isfinite(curve.y).any()]
    if not drawn:
        return None
    x = _Scale(*_extent([curve.x for curve in drawn]), LEFT, WIDTH - RIGHT)
    edges = [part for c in drawn for part in (c.y, c.low, c.high) if part is not None]
    y = _Scale(*_padded(*_extent(edges)), HEIGHT - BOTTOM, TOP)
    parts = [_grid(x, y), *(_curve(curve, curves.index(curve), x, y) for curve in drawn)]
    parts += [
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_title, "middle", "tick"),
        element(
            "text",
            y_title,
            transform=f"translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)",
            text_anchor="middle",
            class_="tick",
        ),
    ]
    described = f"{y_title} over {x_title}: " + ", ".join(curve.label for curve in drawn)
    chart = element("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=described)
    return element("figure", chart, _legend(curves))


def dots_chart(lines: Sequence[Dots], title: str) -> Html | None:
    """A line for each group: a dot for each run, a bar for the interval, a diamond for the average."""
    values = [value for line in lines for _, value in line.values] + [e for line in lines for e in line.interval or ()]
    if not values:
        return None
    height = TOP + ROW * len(lines) + BOTTOM
    x = _Scale(*_padded(min(values), max(values)), LABEL, WIDTH - RIGHT)
    parts = []
    for tick in x.ticks(7):
        parts.append(element("line", x1=x.at(tick), x2=x.at(tick), y1=TOP, y2=height - BOTTOM, class_="grid"))
        parts.append(_text(x.at(tick), height - BOTTOM + 16, short(tick), "middle", "tick"))
    parts += [_dots(line, index, TOP + ROW * index + ROW / 2, x) for index, line in enumerate(lines)]
    parts.append(_text((LABEL + WIDTH - RIGHT) / 2, height - 8, title, "middle", "tick"))
    described = "; ".join(f"{line.label} {number(line.middle)}" for line in lines)
    chart = element("svg", *parts, viewBox=f"0 0 {WIDTH} {height}", role="img", aria_label=f"{title}: {described}")
    return element("figure", chart)


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    start: float  # in the picture
    end: float

    def at(self, value: float) -> float:
        return round(self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start), 1)

    def ticks(self, about: int) -> list[float]:
        step = nice_step((self.high - self.low) / about)
        first = math.ceil(self.low / step - 1e-9)
        return [index * step + 0.0 for index in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _extent(parts: Sequence[Floats]) -> tuple[float, float]:
    values = np.concatenate(parts)
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _padded(low: float, high: float) -> tuple[float, float]:
    margin = (high - low) * 0.04 or max(abs(low), 1.0) * 0.1
    return low - margin, high + margin


def _grid(x: _Scale, y: _Scale) -> Html:
    parts = []
    for tick in y.ticks(6):
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y.at(tick), y2=y.at(tick), class_="grid"))
        parts.append(_text(LEFT - 8, y.at(tick) + 4, short(tick), "end", "tick"))
    for tick in x.ticks(8):
        parts.append(element("line", x1=x.at(tick), x2=x.at(tick), y1=TOP, y2=HEIGHT - BOTTOM, class_="grid"))
        parts.append(_text(x.at(tick), HEIGHT - BOTTOM + 16, short(tick), "middle", "tick"))
    return element("g", *parts)


def _curve(curve: Curve, index: int, x: _Scale, y: _Scale) -> Html:
    every = max(1, -(-len(curve.x) // MOST_POINTS))
    chosen = sorted({*range(0, len(curve.x), every), len(curve.x) - 1})
    dash = DASHES[index // len(COLOURS) % len(DASHES)]
    parts: list[Html] = [element("title", curve.label)]
    if curve.low is not None and curve.high is not None:
        known = [i for i in chosen if math.isfinite(curve.low[i]) and math.isfinite(curve.high[i])]
        there = [f"{x.at(curve.x[i])},{y.at(curve.high[i])}" for i in known]
        back = [f"{x.at(curve.x[i])},{y.at(curve.low[i])}" for i in reversed(known)]
        parts.append(element("polygon", points=" ".join(there + back), fill=colour(index), fill_opacity=0.16))
    line = " ".join(f"{x.at(curve.x[i])},{y.at(curve.y[i])}" for i in chosen if math.isfinite(curve.y[i]))
    stroke = {"stroke": colour(index), "stroke_width": 2, "stroke_dasharray": dash, "stroke_linejoin": "round"}
    parts.append(element("polyline", points=line, fill="none", **stroke))
    return element("g", *parts)


def _dots(line: Dots, index: int, y: float, x: _Scale) -> Html:
    label = line.label if len(line.label) <= 26 else line.label[:25] + "…"
    parts = [element("title", f"{line.label} {number(line.middle)}"), _text(LABEL - 12, y + 4, label, "end")]
    for place, (what, value) in enumerate(line.values):
        high = round(y + ((place * 0.618034) % 1 - 0.5) * (ROW - 22), 1)
        dot = element("title", f"{what}: {number(value)}")
        parts.append(element("circle", dot, cx=x.at(value), cy=high, r=3.4, fill=colour(index), fill_opacity=0.55))
    if line.interval:
        left, right = (x.at(edge) for edge in line.interval)
        width = round(max(right - left, 2), 1)
        parts.append(element("rect", x=left, y=y - 3, width=width, height=6, rx=3, fill=colour(index)))
    if line.middle is not None:
        at = x.at(line.middle)
        parts.append(element("path", d=f"M{at} {y - 8} l5 8 l-5 8 l-5 -8 z", fill=colour(index), class_="mean"))
        if line.interval:
            told = f"{number(line.middle)} {bracket(list(line.interval))}"
            parts.append(element("title", told))
    return element("g", *parts)


def _legend(curves: Sequence[Curve]) -> Html:
    items = []
    for index, curve in enumerate(curves):
        dash = DASHES[index // len(COLOURS) % len(DASHES)]
        line = element("line", x1=0, x2=22, y1=5, y2=5, stroke=colour(index), stroke_width=3, stroke_dasharray=dash)
        swatch = element("svg", line, viewBox="0 0 22 10", class_="swatch")
        items.append(element("span", join(swatch, curve.label), class_="item"))
    return element("figcaption", *items, class_="legend")


def _text(x: float, y: float, words: str, anchor: str, kind: str | None = None) -> Html:
    return element("text", words, x=x, y=y, text_anchor=anchor, class_=kind)
