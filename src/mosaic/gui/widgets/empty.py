"""What a page shows when it has nothing to show: what it is for, and what to do next."""

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QLayout, QVBoxLayout, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label

WIDTH = 440
MARGIN = 24
LEAST_PX = 160


class EmptyState(QWidget):
    def __init__(
        self, title: str, text: str = "", button_text: str = "", clicked: Callable[[], object] | None = None
    ) -> None:
        super().__init__()
        centre = Qt.AlignmentFlag.AlignHCenter
        layout = QVBoxLayout(self)
        layout.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        layout.setSpacing(8)
        layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # else the text of now is the least width
        self.title = label(title, "title")
        self.text = label(text, "muted", wrap=True)
        self.button = button(button_text, clicked, "primary")
        layout.addStretch(2)
        for widget in (self.title, self.text):
            widget.setAlignment(centre)
            layout.addWidget(widget, 0, centre)
        layout.addSpacing(8)
        layout.addWidget(self.button, 0, centre)
        layout.addStretch(3)
        # Only now: a widget without a parent that is made visible is a window of its own for a moment.
        self.button.setVisible(bool(button_text))
        self.set_text(title, text)

    def set_text(self, title: str, text: str = "") -> None:
        self.title.setText(title)
        self.text.setText(text)
        self.text.setVisible(bool(text))
        self._fit()

    def minimumSizeHint(self) -> QSize:
        return QSize(LEAST_PX + 2 * MARGIN, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit()  # only now the stylesheet has given the text its font

    def _fit(self) -> None:
        """The text gets the lines that it needs in this width; centred, a layout would give it two at most."""
        width = max(LEAST_PX, min(WIDTH, self.width() - 2 * MARGIN))
        self.text.setFixedSize(width, max(0, self.text.heightForWidth(width)))
