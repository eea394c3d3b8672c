"""The line that says that there is no daemon yet, or no daemon now."""

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFrame, QHBoxLayout

from mosaic.client import TrainerClient
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.hub.connection import Connection


class ConnectionBanner(QFrame):
    def __init__(self, context: "Context") -> None:
        super().__init__()
        self._context = context
        self.setObjectName("window.connection")
        self.setProperty("kind", "note")
        self.sentence = label("", wrap=True, name="window.connection.sentence")
        self.start_button = button("Start the daemon", self._start, name="window.connection.start")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 6, 8, 6)
        layout.setSpacing(8)
        layout.addWidget(self.sentence, 1)
        layout.addWidget(self.start_button)
        context.hub.connection_changed.connect(self.show_connection)

    def show_connection(self, connection: "Connection") -> None:
        sentence = describe(connection, self._context.host)
        self.sentence.setText(sentence)
        self.setAccessibleName(sentence)
        # On another machine ssh would have to start it.
        self.start_button.setVisible(connection.state == "lost" and self._context.root is not None)
        self.setVisible(bool(sentence))

    def _start(self) -> None:
        self.start_button.setEnabled(False)
        self._context.hub.compute(self._start_daemon, lambda _: self._end(), self._fail, self)

    def _start_daemon(self) -> None:
        TrainerClient.connect(self._context.root).close()

    def _fail(self, error: Exception) -> None:
        self._end()
        self._context.notices.problem("The daemon did not start.", str(error))

    def _end(self) -> None:
        self.start_button.setEnabled(True)


def describe(connection: "Connection", host: str) -> str:
    if connection.state == "ok":
        return ""
    if connection.state == "connecting":
        asked = "If ssh asks for something, answer in the terminal."
        return f"Connecting to {host}… {asked}" if host else "Starting the daemon…"
    whose = f"the daemon on {host}" if host else "the daemon"
    return f"Reconnecting to {whose}… {connection.problem}".strip()
