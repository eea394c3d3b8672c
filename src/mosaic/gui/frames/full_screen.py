"""A frame that fills the screen. Esc and F11 close it."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from mosaic.gui.frames.view import FrameView

if TYPE_CHECKING:
    from mosaic.gui.context import Context

LEAVING = {Qt.Key.Key_Escape, Qt.Key.Key_F11}


class FullScreenFrame(QWidget):
    closed = Signal()
    paused = Signal()  # Space

    def __init__(self, context: "Context", parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setObjectName("frames.full_screen_window")
        self.setWindowTitle("MOSAIC")
        self.view = FrameView(context)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.view)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in LEAVING:
            self.close()
        elif event.key() == Qt.Key.Key_Space:
            self.paused.emit()
        else:
            super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        self.closed.emit()
        super().closeEvent(event)
