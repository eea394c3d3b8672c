"""A line of text that ends with … where there is no room for all of it."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from mosaic.gui.widgets.tip import set_tip
from mosaic.present.text import printable


class ElidedLabel(QLabel):
    """Shows what fits; the tooltip has the whole text."""

    def __init__(
        self,
        text: str = "",
        kind: str = "",
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._mode = mode
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("kind", kind)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setText(text)

    def setText(self, text: str) -> None:
        super().setText(printable(text))
        set_tip(self, text)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance("…") * 3, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        area = self.contentsRect()
        shown = self.fontMetrics().elidedText(self.text(), self._mode, area.width())
        painter.drawText(area, self.alignment() | Qt.TextFlag.TextSingleLine, shown)
