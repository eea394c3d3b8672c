"""A field that finds a run by its name, worker, environment or id, or an experiment by its name, and adds it."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QStringListModel, Qt, Signal
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QCompleter, QLineEdit

from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.hub.hub import TelemetryAsyncHub

MOST = 2000  # newest runs that are offered


class RunField(QLineEdit):
    picked = Signal(str)  # run id
    picked_many = Signal(list)  # run ids of an experiment

    def __init__(self, hub: "TelemetryAsyncHub") -> None:
        super().__init__()
        self._hub = hub
        self._ids: dict[str, str | list[str]] = {}  # by what is shown: a run, or the runs of an experiment
        self._titles = QStringListModel(self)
        self.setPlaceholderText("Add a run…")
        self.setObjectName("compare.add")
        self.setAccessibleName("Add a run to compare")
        self.setClearButtonEnabled(True)
        self.setMaximumWidth(260)
        completer = QCompleter(self._titles, self)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        completer.setMaxVisibleItems(12)
        # Queued: the completer writes into the field after this signal.
        completer.activated.connect(self._pick, Qt.ConnectionType.QueuedConnection)
        self.setCompleter(completer)
        self.returnPressed.connect(lambda: self._pick(self.text()))

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.list_runs()

    def list_runs(self) -> None:
        runs = sorted(self._hub.runs.values(), key=lambda run: run.created_at, reverse=True)[:MOST]
        members: dict[str, list[str]] = {}
        for run in reversed(runs):
            if run.experiment:
                members.setdefault(run.experiment, []).append(run.run_id)
        self._ids = {f"experiment {printable(name)} · {len(ids)} runs": ids for name, ids in members.items()}
        self._ids |= {run_title(run): run.run_id for run in runs}
        self._titles.setStringList(list(self._ids))

    def _pick(self, text: str) -> None:
        if not text.strip():
            return
        self.list_runs()
        matches = [text] if text in self._ids else [each for each in self._ids if text.lower() in each.lower()]
        if matches:
            self.clear()
            found = self._ids[matches[0]]
            self.picked.emit(found) if isinstance(found, str) else self.picked_many.emit(found)


def run_title(run: "Run") -> str:
    words = (run.name, run.worker_name, run.algo, run.env_id, run.run_id)
    return " · ".join(printable(word) for word in words if word)
