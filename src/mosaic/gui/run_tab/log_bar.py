"""The controls above a log: which stream, search, follow, and more of it."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label

if TYPE_CHECKING:
    from collections.abc import Callable

CHOICES = {"stdout and stderr": "", "Only stdout": "stdout", "Only stderr": "stderr", "Only problems": "problems"}


class LogBar(QWidget):
    stream_chosen = Signal(str)  # empty: all; stdout, stderr, problems
    searched = Signal(str)

    def __init__(
        self, go: "Callable[[int], None]", follow: "Callable[[], None]", load_all: "Callable[[], None]"
    ) -> None:
        super().__init__()
        self.stream = QComboBox()
        self.stream.setObjectName("log.stream")
        self.stream.setAccessibleName("Stream")
        self.stream.addItems(list(CHOICES))
        self.stream.currentTextChanged.connect(lambda title: self.stream_chosen.emit(CHOICES[title]))
        self.search = QLineEdit(placeholderText="Search (Ctrl+F)", clearButtonEnabled=True)
        self.search.setObjectName("log.search")
        self.search.setAccessibleName("Search the log")
        self.search.setMaximumWidth(280)
        self.search.textChanged.connect(self.searched)
        self.search.returnPressed.connect(lambda: go(1))
        self.found = label("", "muted", name="log.found")
        self.previous = button("↑", lambda: go(-1), "flat", "Previous match", "Shift+F3", name="log.previous")
        self.previous.setAccessibleName("Previous match")
        self.next = button("↓", lambda: go(1), "flat", "Next match", "F3", name="log.next")
        self.next.setAccessibleName("Next match")
        self.count = label("", "muted", name="log.count")
        self.load_all = button("Load all", load_all, "flat", "Read the log from its beginning", name="log.load_all")
        self.follow = button("↓ Follow", follow, "plain", "Scroll to the end and stay there", name="log.follow")
        self._lay_out()

    def focus_search(self) -> None:
        self.search.setFocus()
        self.search.selectAll()

    def _lay_out(self) -> None:
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        for widget in (self.stream, self.search, self.previous, self.next, self.found):
            layout.addWidget(widget)
        layout.addStretch(1)
        for widget in (self.count, self.load_all, self.follow):
            layout.addWidget(widget)
