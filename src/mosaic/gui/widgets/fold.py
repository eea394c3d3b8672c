"""A heading that shows and hides what is below it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

ARROWS = {True: "▾", False: "▸"}


class Fold(QWidget):
    toggled = Signal(bool)

    def __init__(self, title: str, content: QWidget, is_open: bool = False) -> None:
        super().__init__()
        self.content = content
        self.header = QPushButton()
        self.header.setProperty("kind", "fold")
        self.header.setCheckable(True)
        self.header.setCursor(Qt.CursorShape.PointingHandCursor)
        self.header.setAutoDefault(False)
        self.header.toggled.connect(self._show)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.header)
        layout.addWidget(content)
        self.set_title(title)
        content.setVisible(is_open)
        self.header.setChecked(is_open)

    @property
    def is_open(self) -> bool:
        return self.header.isChecked()

    def set_open(self, is_open: bool) -> None:
        self.header.setChecked(is_open)

    def set_title(self, title: str) -> None:
        self._title = title
        self.header.setAccessibleName(title)
        self._write()

    def _show(self, is_open: bool) -> None:
        self.content.setVisible(is_open)
        self._write()
        self.toggled.emit(is_open)

    def _write(self) -> None:
        # An ampersand in a button's text would mark a shortcut.
        self.header.setText(f"{ARROWS[self.is_open]}  {self._title.replace('&', '&&')}")
