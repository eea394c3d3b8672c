"""Greys the pages while there is no daemon: what was there stays readable, and nobody takes it for live."""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from mosaic.gui.theme import Theme

STRENGTH = 0.45


class Veil(QWidget):
    def __init__(self, over: QWidget, theme: Theme) -> None:
        super().__init__(over)
        self._over = over
        self._theme = theme
        self.setObjectName("window.veil")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        over.installEventFilter(self)
        self.hide()

    def cover(self, is_lost: bool) -> None:
        self.resize(self._over.size())
        self.setVisible(is_lost)
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Resize:
            self.resize(self._over.size())
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        colour = QColor(self._theme.colours.ground)
        colour.setAlphaF(STRENGTH)
        QPainter(self).fillRect(self.rect(), colour)
