"""The small card beside the mouse: the values of all curves at that place."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from mosaic.gui.theme import Theme

ROW, PADDING, SWATCH, GAP = 18, 8, 14, 8
MOST_LABEL = 220
MOST_ROWS = 14


@dataclass(frozen=True)
class HoverRow:
    pen: QPen
    label: str
    value: str


class HoverCard(QWidget):
    """Painted in one go: it moves with the mouse, and a layout of labels would be too slow for that."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._title = ""
        self._rows: list[HoverRow] = []
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def show_rows(self, title: str, rows: Sequence[HoverRow], place: QPoint) -> None:
        """Show these beside `place`, within the parent."""
        left_over = len(rows) - MOST_ROWS
        self._title = title
        self._rows = list(rows[:MOST_ROWS])
        if left_over > 0:
            self._rows.append(HoverRow(QPen(Qt.PenStyle.NoPen), f"and {left_over} more", ""))
        self.resize(self._size())
        self.move(self._beside(place))
        self.show()
        self.raise_()
        self.update()

    def text(self) -> str:
        """What it shows, for tests and screen readers."""
        return "\n".join([self._title, *(f"{row.label} {row.value}" for row in self._rows)])

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._theme.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colours.line), 1))
        painter.setBrush(QColor(colours.surface))
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 4, 4)
        painter.setPen(QColor(colours.muted))
        painter.drawText(self._line(0), Qt.AlignmentFlag.AlignVCenter, self._title)
        for index, row in enumerate(self._rows):
            self._paint_row(painter, self._line(index + 1), row)

    def _paint_row(self, painter: QPainter, area: QRect, row: HoverRow) -> None:
        painter.setPen(row.pen)
        middle = area.center().y() + 1
        painter.drawLine(area.left(), middle, area.left() + SWATCH, middle)
        painter.setPen(QColor(self._theme.colours.text))
        metrics = self.fontMetrics()
        label = metrics.elidedText(row.label, Qt.TextElideMode.ElideMiddle, MOST_LABEL)
        painter.drawText(area.adjusted(SWATCH + GAP, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, label)
        painter.setFont(self._bold())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, row.value)
        painter.setFont(self.font())

    def _bold(self) -> QFont:
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        return font

    def _line(self, index: int) -> QRect:
        return QRect(PADDING, PADDING // 2 + index * ROW, self.width() - 2 * PADDING, ROW)

    def _size(self) -> QSize:
        metrics, bold = self.fontMetrics(), QFontMetrics(self._bold())
        labels = max((min(MOST_LABEL, metrics.horizontalAdvance(row.label)) for row in self._rows), default=0)
        values = max((bold.horizontalAdvance(row.value) for row in self._rows), default=0)
        width = max(metrics.horizontalAdvance(self._title), SWATCH + GAP + labels + 2 * GAP + values)
        return QSize(width + 2 * PADDING + 2, ROW * (len(self._rows) + 1) + PADDING)

    def _beside(self, place: QPoint) -> QPoint:
        parent = self.parentWidget()
        assert parent
        is_right = place.x() + 16 + self.width() <= parent.width()
        left = place.x() + 16 if is_right else max(0, place.x() - 16 - self.width())
        top = min(max(0, place.y() - self.height() // 2), max(0, parent.height() - self.height()))
        return QPoint(left, top)
