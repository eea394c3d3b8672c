"""A line to copy: a command, a path, an id."""

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.tip import set_tip

COPIED_MS = 1500


class CopyField(QWidget):
    def __init__(self, text: str = "", title: str = "Text to copy") -> None:
        super().__init__()
        self.field = QLineEdit(readOnly=True)
        self.field.setProperty("kind", "mono")
        self.field.setAccessibleName(title)
        self.button = button("Copy", self.copy, tip="Copy to the clipboard")
        self.button.setMinimumWidth(self.button.fontMetrics().horizontalAdvance("Copied ✓") + 26)
        self._back = QTimer(self, singleShot=True, interval=COPIED_MS)
        self._back.timeout.connect(lambda: self.button.setText("Copy"))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(self.field, 1)
        layout.addWidget(self.button)
        self.set_text(text)

    @property
    def text(self) -> str:
        return self.field.text()

    def set_text(self, text: str) -> None:
        if text == self.field.text():
            return
        self.field.setText(text)
        self.field.setCursorPosition(0)
        set_tip(self.field, text)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text)
        self.button.setText("Copied ✓")
        self._back.start()
