"""Telemetry that was skipped while the window was busy, in words, with a button that fetches it."""

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFrame, QHBoxLayout

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label
from mosaic.present.scores import count

if TYPE_CHECKING:
    from mosaic.gui.run_tab.source import RunSource


class MissedNote(QFrame):
    """Hidden while nothing is missing."""

    def __init__(self, source: "RunSource") -> None:
        super().__init__()
        self.setProperty("kind", "note")
        self._source = source
        self.words = label("", wrap=True, name="run.missed")
        self.fetch = button("Fetch them", source.fetch_missed, "flat", "Read them from the store", name="run.fetch")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 2, 8, 2)
        layout.addWidget(self.words, 1)
        layout.addWidget(self.fetch)
        source.missed_changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        skipped = sum(last - first + 1 for first, last in self._source.missed)
        verb = "was" if skipped == 1 else "were"
        self.words.setText(f"{count(skipped, 'event')} {verb} skipped while the window was busy.")
        self.setVisible(bool(skipped))
