"""Axes whose ticks read 1k, 1.2M, 2m30s."""

from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QFont, QPen

from mosaic.present.axes import TIME, duration_step, tick_step, tick_texts
from mosaic.present.text import number

TICK_PX = {"bottom": 64, "left": 26}  # room for one tick
TEXT_PX = 16  # the height of its text


class TickAxis(pg.AxisItem):
    """One level of ticks, all in the same unit. With `quantity` "time", values are seconds."""

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self.quantity = ""
        self._label_style: dict[str, str] = {}
        self.enableAutoSIPrefix(False)
        self.setStyle(tickLength=0, tickTextOffset=6, autoExpandTextSpace=True)

    def boundingRect(self) -> QRectF:
        """A text at the end of the axis stands half outside of it; pyqtgraph would drop it on an axis with a grid."""
        room = TEXT_PX / 2 if self.orientation == "left" else 0
        return QRectF(super().boundingRect()).adjusted(0, -room, 0, room)

    def paint_in(self, text: str, grid: str, font: QFont) -> None:
        """The colours of the texts, and of the grid lines."""
        self.setTextPen(QColor(text))
        self.setPen(QPen(QColor(0, 0, 0, 0)))
        self.setTickPen(QColor(grid))
        self.setTickFont(font)
        self._label_style = {"color": text, "font-size": "11px"}
        self.setLabel(self.labelText, **self._label_style)

    def name_quantity(self, quantity: str) -> None:
        self.quantity = quantity
        self.setLabel(quantity, **self._label_style)

    def tickSpacing(self, low: float, high: float, size: float) -> list[tuple[float, float]]:
        most = max(2, int(size / TICK_PX[self.orientation]))
        if high <= low:
            return [(1.0, 0.0)]
        step = duration_step(high - low, most) if self.quantity == TIME else tick_step(low, high, most)
        return [(step, 0.0)]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        if self.logMode:
            return [number(10.0 ** float(value)) for value in values]
        return tick_texts([float(value) for value in values], self.quantity)

    def tickValues(self, low: float, high: float, size: float) -> list[Any]:
        levels = super().tickValues(low, high, size)
        # In a log scale pyqtgraph adds levels without texts; one is calmer.
        return list(levels[:1]) if self.logMode else list(levels)

    def logTickValues(self, low: float, high: float, size: float, levels: Any) -> Any:
        """Whole decades if there are at least two, else the ordinary ticks of the exponent."""
        whole = [(spacing, [value for value in values if value == round(value)]) for spacing, values in levels]
        return whole if sum(len(values) for _, values in whole) > 1 else levels
