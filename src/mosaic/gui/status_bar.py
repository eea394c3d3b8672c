"""The line at the bottom of the window."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout

from mosaic.gui.widgets.elided import ElidedLabel
from mosaic.present.status_line import status_line

if TYPE_CHECKING:
    from mosaic.gui.context import Context

INTERVAL_MS = 500


class StatusBar(QFrame):
    """Written at most twice a second, however often runs change."""

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self._context = context
        self.setObjectName("window.status")
        self.line = ElidedLabel("", "caption")
        self.line.setObjectName("window.status.line")
        self.line.setAccessibleName("Status")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 4, 12, 4)
        layout.addWidget(self.line)
        self._timer = QTimer(self, singleShot=True, interval=INTERVAL_MS)
        self._timer.timeout.connect(self.write)
        context.hub.runs_changed.connect(self._write_soon)
        context.hub.connection_changed.connect(self.write)
        self.write()

    def write(self, *_: object) -> None:
        connection = self._context.hub.connection
        text = status_line(connection.state, self._context.host, connection.health, self._context.hub.runs)
        if text != self.line.text():
            self.line.setText(text)

    def _write_soon(self, *_: object) -> None:
        if not self._timer.isActive():
            self._timer.start()
