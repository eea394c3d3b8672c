"""Widgets in rows from left to right, as text flows."""

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class FlowLayout(QLayout):
    def __init__(self, parent: QWidget | None = None, spacing: int = 4) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.setSpacing(spacing)
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def height_for(self, width: int) -> int:
        return self._arrange(QRect(0, 0, width, 0), is_trial=True)

    def setGeometry(self, area: QRect) -> None:
        super().setGeometry(area)
        self._arrange(area, is_trial=False)

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        return size

    def _arrange(self, area: QRect, is_trial: bool) -> int:
        """Place the items in rows; returns the height that they need."""
        x, y, row = area.x(), area.y(), 0
        for item in self._items:
            size = item.sizeHint()
            if x > area.x() and x + size.width() > area.right() + 1:
                x, y, row = area.x(), y + row + self.spacing(), 0
            if not is_trial:
                item.setGeometry(QRect(QPoint(x, y), QSize(min(size.width(), area.width()), size.height())))
            x, row = x + size.width() + self.spacing(), max(row, size.height())
        return y + row - area.y()


class FlowBox(QWidget):
    """As high as its rows need.

    The height is set, not negotiated: Qt would reserve the height of the narrowest possible box for the whole page.
    """

    def __init__(self, spacing: int = 4) -> None:
        super().__init__()
        self.flow = FlowLayout(self, spacing)

    def clear(self) -> None:
        while item := self.flow.takeAt(0):
            if widget := item.widget():
                widget.hide()
                widget.deleteLater()

    def refit(self) -> None:
        """Call this after adding or removing widgets."""
        self.setFixedHeight(self.flow.height_for(self.width()))
        self.flow.activate()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.refit()
