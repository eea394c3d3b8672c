"""The lower half of the runs page: the tab of the selected run."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QVBoxLayout, QWidget

from mosaic.gui.widgets.empty import EmptyState
from mosaic.present.run_cells import name_of

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.run_tab.tab import RunTab

NONE_TITLE, NONE_TEXT = "No run is selected", "Select a run above to see its curves, frames and log."
PAINT_MS = 50  # time in which the words "Opening …" are painted


class RunPanel(QWidget):
    """Shows one run at a time. The section stays when another run is selected, unless that run failed."""

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self._context = context
        self.tab: RunTab | None = None
        self._opening = ""  # the run that is opened in a moment
        self._is_loaded = False
        self._empty = EmptyState(NONE_TITLE, NONE_TEXT)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.addWidget(self._empty)

    @property
    def run_id(self) -> str:
        return self.tab.run_id if self.tab else self._opening

    def set_run(self, run_id: str) -> None:
        """Show this run; an empty id shows none."""
        if run_id == self.run_id and not (self.tab and self.tab.source.is_deleted):
            return
        self._remove()
        self._opening = run_id
        if run_id and self._is_loaded:
            self._open()
            return
        self._empty.set_text(*((f"Opening {self._name_of(run_id)}…", "") if run_id else (NONE_TITLE, NONE_TEXT)))
        self._empty.show()
        if run_id:
            QTimer.singleShot(PAINT_MS, self, self._open)

    def _open(self) -> None:
        """Charts and frames are loaded with the first run: seconds on a busy machine, so words stand here before."""
        from mosaic.gui.run_tab.tab import RunTab

        self._is_loaded = True
        if self._opening:
            self._empty.hide()
            self.tab = RunTab(self._context, self._opening, self._section(self._opening))
            self.tab.header.tabs.currentChanged.connect(self._remember)
            self._layout.addWidget(self.tab)
            self._opening = ""

    def _name_of(self, run_id: str) -> str:
        run = self._context.hub.runs.get(run_id)
        return name_of(run) if run else run_id

    def _section(self, run_id: str) -> str:
        run = self._context.hub.runs.get(run_id)
        if run and str(run.state) == "FAULTED":
            return "overview"
        return str(self._context.memory.value("run_panel/section", ""))

    def _remember(self) -> None:
        if self.tab:
            self._context.memory.remember("run_panel/section", self.tab.section)

    def _remove(self) -> None:
        if self.tab:
            self.tab.hide()  # ends its feeds now; the object goes later
            self._layout.removeWidget(self.tab)
            self.tab.deleteLater()
            self.tab = None
