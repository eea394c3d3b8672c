"""The history of a run's state: when it changed, for how long, and why."""

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QHeaderView

from mosaic.gui.run_tab.text_table import TextTable
from mosaic.gui.widgets.card import Card
from mosaic.present.state_history import history_rows

if TYPE_CHECKING:
    from mosaic.client import Run


class HistoryCard(Card):
    def __init__(self) -> None:
        super().__init__("State history")
        self.table = TextTable(("State", "Since", "For", "Reason"), numbers=(2,), stretch=3, name="run.history")
        self.table.setAccessibleName("State history")
        for column, width in enumerate((132, 86, 56)):
            self.table.setColumnWidth(column, width)
        # Reasons are sentences; there are only a few rows.
        self.table.setWordWrap(True)
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.body.addWidget(self.table)

    def show_run(self, run: "Run") -> None:
        self.table.rows.set_rows([(row.state, row.at, row.lasted, row.reason) for row in history_rows(run)])
