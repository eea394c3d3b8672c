"""The list of workers."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem

from mosaic.gui.widgets.tip import plain_tip
from mosaic.present.text import printable
from mosaic.present.worker_rows import AVAILABLE, BROKEN, INSTALLED, WorkerRow

if TYPE_CHECKING:
    from mosaic.gui.theme import Theme

HEADINGS = ("Worker", "State", "Version", "Python", "Size")
LEAST_PX = {2: 400, 3: 480, 4: 360}  # the width of the table from which a column is shown; the name needs the rest
STATES = {INSTALLED: "✓ installed", BROKEN: "✕ broken", AVAILABLE: "◌ available"}
ROLES = {INSTALLED: "done", BROKEN: "failed", AVAILABLE: "muted"}
BUSY = {"install": "▶ installing", "test": "▶ testing"}


class WorkerTable(QTableWidget):
    chosen = Signal(str, str)  # the name and the environment of the selected worker

    def __init__(self, theme: "Theme") -> None:
        super().__init__(0, len(HEADINGS))
        self._theme = theme
        self.rows: list[WorkerRow] = []
        self.setObjectName("workers.table")
        self.setAccessibleName("Workers")
        self.setHorizontalHeaderLabels(list(HEADINGS))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.verticalHeader().setVisible(False)
        self.verticalHeader().setDefaultSectionSize(30)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.itemSelectionChanged.connect(self._choose)
        theme.changed.connect(self._colour)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for column, least in LEAST_PX.items():
            self.setColumnHidden(column, event.size().width() < least)

    def show_rows(self, rows: list[WorkerRow], busy: dict[str, str]) -> None:
        """Show the workers and keep the selection. `busy`: what is being done with some of them, install or test."""
        selected = self.selected
        self.blockSignals(True)
        self.rows = rows
        self.setRowCount(len(rows))
        for place, row in enumerate(rows):
            state = BUSY[busy[row.name]] if row.name in busy else STATES[row.status]
            for column, text in enumerate((row.name, state, row.version, row.python, row.size)):
                self._set(place, column, text, row)
        self._colour()
        self.blockSignals(False)
        self.select(*selected)

    @property
    def selected(self) -> tuple[str, str]:
        place = self.currentRow()
        return (self.rows[place].name, self.rows[place].environment) if 0 <= place < len(self.rows) else ("", "")

    def select(self, name: str, environment: str = "") -> None:
        """Select a worker by its name; of several, the one in that environment. Else the first row."""
        named = [place for place, row in enumerate(self.rows) if row.name == name]
        exact = [place for place in named if self.rows[place].environment == environment]
        if self.rows:
            self.setCurrentCell((exact or named or [0])[0], 0)
            self._choose()

    def _set(self, place: int, column: int, text: str, row: WorkerRow) -> None:
        item = QTableWidgetItem(printable(text))
        if column == len(HEADINGS) - 1:
            item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        item.setToolTip(plain_tip(row.problem or row.description))
        self.setItem(place, column, item)

    def _colour(self) -> None:
        for place, row in enumerate(self.rows):
            state, name = self.item(place, 1), self.item(place, 0)
            if state and name:
                role = "running" if state.text() in BUSY.values() else ROLES[row.status]
                state.setForeground(QColor(getattr(self._theme.colours, role)))
                name.setForeground(
                    QColor(self._theme.colours.muted if row.status == AVAILABLE else self._theme.colours.text)
                )

    def _choose(self) -> None:
        self.chosen.emit(*self.selected)
