"""Curves in the terminal: braille characters have two by four dots each.

500 ┤        ⣀⠤⠒⠉a
    │    ⡠⠔⠊⠁ ⣀⡠⠤b
  0 ┤⣀⠤⠊⣀⡠⠤⠒⠉
    └┬──────────────┬
     0            100k
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosaic.cli.terminal_text import paint
from mosaic.present.axes import nice_step
from mosaic.present.text import number

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a character
BLANK = 0x2800
STYLES = ("cyan", "yellow", "green", "red", "blue", "bold")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
EDGE_EVERY = 3  # dots between those of a band's edge, which is thinner than the curve


@dataclass(frozen=True)
class Line:
    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]  # NaN: a gap
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None


def plot(lines: Sequence[Line], width: int = 80, height: int = 16) -> str:
    """The curves with their bands, ticks and a legend; empty if there is nothing to draw."""
    drawn = [line for line in lines if np.isfinite(line.y).any()]
    if not drawn:
        return ""
    left, right = min(float(line.x[0]) for line in drawn), max(float(line.x[-1]) for line in drawn)
    bottom, top = _range(drawn)
    ticks = _ticks(bottom, top, height)
    margin = max(len(number(value)) for value in ticks)
    canvas = Canvas(max(20, width - margin - 4), height, (left, right), (bottom, top))
    for index, line in enumerate(lines):
        canvas.draw(line, index)
    rows = canvas.rows()
    labels = {canvas.row_of(value): number(value) for value in ticks}
    shown = [f"{labels.get(i, ''):>{margin}} {'┤' if i in labels else '│'}{row}" for i, row in enumerate(rows)]
    return "\n".join([*shown, *_foot(margin, canvas.width, left, right), _legend(lines)])


class Canvas:
    def __init__(self, width: int, height: int, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.width, self.height = width, height
        self._x, self._y = x, y
        self._dots = np.zeros((height, width), np.int64)
        self._owner = np.full((height, width), -1)
        self._ends: dict[tuple[int, int], int] = {}  # place of a line's letter → the line

    def draw(self, line: Line, index: int) -> None:
        columns = np.linspace(*self._x, self.width * 2)
        inside = (columns >= line.x[0]) & (columns <= line.x[-1])
        for edge in (line.low, line.high):
            if edge is not None:
                self._trace(np.where(inside, _at(columns, line.x, edge), np.nan), index, EDGE_EVERY)
        last = self._trace(np.where(inside, _at(columns, line.x, line.y), np.nan), index)
        if last:
            self._mark(*last, index)

    def row_of(self, value: float) -> int:
        return int(self._dot_row(value)) // 4

    def rows(self) -> list[str]:
        return ["".join(self._cell(row, column) for column in range(self.width + 1)) for row in range(self.height)]

    def _cell(self, row: int, column: int) -> str:
        if (row, column) in self._ends:
            index = self._ends[row, column]
            return paint(LETTERS[index % len(LETTERS)], STYLES[index % len(STYLES)])
        if column == self.width or not self._dots[row, column]:
            return " "
        return paint(chr(BLANK + int(self._dots[row, column])), STYLES[self._owner[row, column] % len(STYLES)])

    def _trace(self, values: NDArray[np.float64], index: int, every: int = 1) -> tuple[int, int] | None:
        """Set the dots; returns the character that has the last one."""
        place, before = None, None
        for column in range(0, len(values), every):
            if not math.isfinite(values[column]):
                before = None
                continue
            row = self._dot_row(float(values[column]))
            span = range(min(row, before), max(row, before) + 1) if before is not None and every == 1 else (row,)
            for each in span:
                self._set(each, column, index)
            place, before = (row // 4, column // 2), row
        return place

    def _dot_row(self, value: float) -> int:
        bottom, top = self._y
        share = (value - bottom) / (top - bottom)
        return min(max(round((1 - share) * (self.height * 4 - 1)), 0), self.height * 4 - 1)

    def _set(self, row: int, column: int, index: int) -> None:
        self._dots[row // 4, column // 2] |= DOTS[row % 4][column % 2]
        self._owner[row // 4, column // 2] = index

    def _mark(self, row: int, column: int, index: int) -> None:
        """The line's letter behind its end, or in the nearest free row."""
        for away in range(self.height):
            for place in ((row - away, column + 1), (row + away, column + 1)):
                if 0 <= place[0] < self.height and place not in self._ends:
                    self._ends[place] = index
                    return


def _at(columns: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the points in each column, or a value between its neighbours: a spike must not decide alone."""
    known = np.isfinite(y)
    if not known.any():
        return np.full(len(columns), np.nan)
    x, y = x[known], y[known]
    bins = np.searchsorted((columns[:-1] + columns[1:]) / 2, x)
    weight = np.bincount(bins, minlength=len(columns))
    total = np.bincount(bins, y, len(columns))
    found = np.interp(columns, x, y, left=np.nan, right=np.nan)
    found[weight > 0] = total[weight > 0] / weight[weight > 0]
    return found


def _range(lines: Sequence[Line]) -> tuple[float, float]:
    parts = [edge for line in lines for edge in (line.y, line.low, line.high) if edge is not None]
    values = np.concatenate(parts)
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 1, high + 1)


def _ticks(bottom: float, top: float, height: int) -> list[float]:
    step = nice_step((top - bottom) / max(2, height // 4))
    first = math.ceil(bottom / step - 1e-9)
    return [index * step + 0.0 for index in range(first, math.floor(top / step + 1e-9) + 1)]


def _foot(margin: int, width: int, left: float, right: float) -> list[str]:
    first, last = number(left), number(right)
    gap = max(1, width - len(first) - len(last))
    return [f"{'':>{margin}} └{'─' * width}", f"{'':>{margin}}  {first}{'':>{gap}}{last}"]


def _legend(lines: Sequence[Line]) -> str:
    return "\n".join(
        paint(f"  {LETTERS[index % len(LETTERS)]}  {line.label}", STYLES[index % len(STYLES)])
        for index, line in enumerate(lines)
    )
