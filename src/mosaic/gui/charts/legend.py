"""The names of the curves; a click hides or shows one."""

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from mosaic.gui.charts.flow_layout import FlowBox
from mosaic.gui.charts.pens import curve_pen
from mosaic.gui.theme import Theme
from mosaic.gui.widgets.tip import set_tip
from mosaic.present.curves import Series
from mosaic.present.text import printable

MOST_LABEL = 260
SWATCH = 18


class Legend(FlowBox):
    toggled = Signal(str, bool)  # key, is it shown

    def __init__(self, theme: Theme) -> None:
        super().__init__(spacing=4)
        self._theme = theme
        self._entries: dict[str, LegendEntry] = {}

    def set_series(self, series: Sequence[Series], hidden: set[str]) -> None:
        if list(self._entries) != [each.key for each in series]:
            self._rebuild(series)
        for each in series:
            entry = self._entries[each.key]
            entry.show_series(each)
            entry.setChecked(each.key not in hidden)
        self.refit()

    def _rebuild(self, series: Sequence[Series]) -> None:
        self.clear()
        self._entries = {each.key: LegendEntry(self._theme, self) for each in series}
        for key, entry in self._entries.items():
            entry.clicked.connect(lambda is_on, key=key: self.toggled.emit(key, is_on))
            self.flow.addWidget(entry)
            entry.show()  # Qt gives a widget that was never shown no room


class LegendEntry(QAbstractButton):
    """A piece of the line and the name beside it; pale while the curve is hidden."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._series: Series | None = None
        self.setCheckable(True)
        self.setChecked(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def show_series(self, series: Series) -> None:
        self._series = series
        if self.text() != printable(series.label):
            self.setText(printable(series.label))
            self.setAccessibleName(f"Curve {printable(series.label)}")
            set_tip(self, f"{series.label}\nClick to hide or show this curve")
            self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        width = min(MOST_LABEL, self.fontMetrics().horizontalAdvance(self.text()))
        return QSize(SWATCH + 8 + width + 12, 22)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._series is None:
            return
        colours = self._theme.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.hasFocus() or self.underMouse():
            painter.setPen(QPen(QColor(colours.accent if self.hasFocus() else colours.hover), 1))
            painter.setBrush(QColor(colours.hover))
            painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 4, 4)
        painter.setOpacity(1.0 if self.isChecked() else 0.35)
        pen = curve_pen(colours, self._series.colour, self._series.is_faded)
        pen.setWidthF(2.0)
        painter.setPen(pen)
        middle = self.height() // 2
        painter.drawLine(6, middle, 6 + SWATCH, middle)
        painter.setPen(QColor(colours.muted if self._series.is_faded or not self.isChecked() else colours.text))
        area = self.rect().adjusted(SWATCH + 12, 0, -4, 0)
        text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideMiddle, area.width())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, text)
