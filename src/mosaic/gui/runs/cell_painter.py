"""Draws the cells of the table of runs: text, the state in its colour, a thin progress bar, a sparkline of returns."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from mosaic.gui.runs.model import RUN, Index
from mosaic.gui.theme import Theme
from mosaic.present.run_cells import COLUMNS, KIND, Column
from mosaic.present.text import squeeze

if TYPE_CHECKING:
    from mosaic.client import Run

ROW_PX = 30
PAD_PX = 8
BAR_PX = 4
TEXT_BESIDE_BAR_PX = 98  # room for `62% 1h05m`
SPARK_PX = 52
MUTED = {"worker", "algo", "seed", "age", "size", "gpu", "rate", "note", "id"}
State = QStyle.StateFlag


class CellPainter(QStyledItemDelegate):
    """Paints by hand: a stylesheet's own painting costs several times as much per cell."""

    def __init__(self, theme: Theme, view: QWidget) -> None:
        super().__init__(view)
        self._theme = theme
        self.is_stale = False  # the daemon does not answer: live states are greyed

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(80, ROW_PX)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        run: Run | None = index.data(RUN)
        if run is None:
            return  # the heading of a group is drawn over all columns by the view
        column = COLUMNS[index.column()]
        painter.save()
        if option.state & State.State_Selected:
            painter.fillRect(option.rect, QColor(self._theme.colours.selection))
        area = option.rect.adjusted(PAD_PX, 0, -PAD_PX, 0)
        text = index.data()
        if column.key == "progress" and run.progress is not None:
            self._progress(painter, area, run, text)
        elif column.key == "return":
            self._return(painter, area, run, text)
        else:
            self._text(painter, area, text, column, self._colour(run, column))
        painter.restore()

    def _colour(self, run: "Run", column: Column) -> str:
        colours = self._theme.colours
        if column.key == "state":
            return self._state_colour(run)
        if column.key == "note" and KIND[run.state] == "failed":
            return colours.failed
        return colours.muted if column.key in MUTED else colours.text

    def _state_colour(self, run: "Run") -> str:
        if self.is_stale and not run.state.is_over:
            return self._theme.colours.muted
        return str(getattr(self._theme.colours, KIND[run.state]))

    def _text(self, painter: QPainter, area: QRect, text: str, column: Column, colour: str) -> None:
        painter.setPen(QColor(colour))
        side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, shown)

    def _progress(self, painter: QPainter, area: QRect, run: "Run", text: str) -> None:
        room = min(TEXT_BESIDE_BAR_PX, area.width())
        bar = QRectF(area.left(), area.center().y() - BAR_PX / 2 + 1, area.width() - room - PAD_PX, BAR_PX)
        if bar.width() > 24:
            self._bar(painter, bar, run)
            area = area.adjusted(area.width() - room, 0, 0, 0)
        share, _, left = text.partition(" ")
        painter.setPen(QColor(self._theme.colours.text))
        middle = Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine
        painter.drawText(area, Qt.AlignmentFlag.AlignLeft | middle, share)
        beside = area.adjusted(painter.fontMetrics().horizontalAdvance("100% "), 0, 0, 0)
        painter.setPen(QColor(self._theme.colours.muted))
        painter.drawText(beside, Qt.AlignmentFlag.AlignLeft | middle, left)

    def _bar(self, painter: QPainter, bar: QRectF, run: "Run") -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colours.line))
        painter.drawRoundedRect(bar, BAR_PX / 2, BAR_PX / 2)
        painter.setBrush(QColor(self._state_colour(run)))
        painter.drawRoundedRect(
            QRectF(bar.topLeft(), bar.size()).adjusted(0, 0, -bar.width() * (1 - (run.progress or 0.0)), 0),
            BAR_PX / 2,
            BAR_PX / 2,
        )

    def _return(self, painter: QPainter, area: QRect, run: "Run", text: str) -> None:
        """The number, and beside it the curve if there is room for both."""
        column = COLUMNS[[column.key for column in COLUMNS].index("return")]
        left = area.adjusted(0, 0, -SPARK_PX - PAD_PX, 0)
        is_roomy = painter.fontMetrics().horizontalAdvance(text) <= left.width()
        self._text(painter, left if is_roomy else area, text, column, self._theme.colours.text)
        values = run.summary.return_trace or run.summary.recent_returns
        if is_roomy and len(values) > 1:
            spark = QRectF(area.right() - SPARK_PX, area.top() + 8, SPARK_PX, area.height() - 16)
            painter.setPen(QPen(QColor(self._state_colour(run)), 1.5))
            draw_sparkline(painter, spark, values)


def draw_sparkline(painter: QPainter, area: QRectF, values: Sequence[float]) -> None:
    """The values as a line in this area; a gap where a value is not finite."""
    shown = squeeze(values, int(area.width() / 2))
    finite = [value for value in shown if math.isfinite(value)]
    if not finite:
        return
    low, span = min(finite), (max(finite) - min(finite)) or 1.0
    step = area.width() / max(1, len(shown) - 1)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    line: list[QPointF] = []
    for place, value in enumerate([*shown, math.nan]):
        if math.isfinite(value):
            line.append(QPointF(area.left() + place * step, area.bottom() - (value - low) / span * area.height()))
        elif line:
            painter.drawPolyline(QPolygonF(line))
            line = []
