"""The statistics of the compared groups: a table with intervals, and what they say."""

from typing import TYPE_CHECKING

from mosaic_sdk.results.wording import bracket, number
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from mosaic.gui.compare.settings_table import SettingsTable
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label
from mosaic.present.settings_diff import SettingRow
from mosaic.stats.averages import TITLES

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.present.group_comparison import GroupComparison, GroupResult

COLUMNS = ("iqm", "mean", "median")
MOST_SENTENCES = 20


class StatisticsPanel(QWidget):
    def __init__(self, context: "Context") -> None:
        super().__init__()
        self._context = context
        self.words = label("", "muted", name="compare.value_words")
        self.table = SettingsTable("group", "compare.statistics", "Statistics of the compared groups")
        self.verdict = label("", wrap=True, name="compare.verdict")
        self.warnings = label("", "muted", wrap=True, name="compare.warnings")
        self.copy_button = button("Copy table", self._copy, "flat", "As tab-separated text", name="compare.copy_stats")
        self.setMinimumHeight(120)
        self._lay_out()

    def show_comparison(self, found: "GroupComparison | None", problem: str = "") -> None:
        self.table.setVisible(found is not None)
        self.copy_button.setVisible(found is not None)
        if found is None:
            self.words.setText("")
            self.verdict.setText(problem)
            self.warnings.setText("")
            return
        self.words.setText(found.value_words)
        names = (f"{found.unit}s", *(f"{TITLES[name]} [95 %]" for name in COLUMNS))
        self.table.show_rows([_row(group) for group in found.groups], names)
        self.table.resizeColumnsToContents()
        clear_first = sorted(zip(found.pairs, found.sentences(), strict=True), key=lambda pair: not pair[0].is_clear)
        self.verdict.setText("\n".join(text for _, text in clear_first[:MOST_SENTENCES]))
        # Without the options of the command line.
        self.warnings.setText("\n".join(note.text for note in (*found.notes, found.curve_note) if note.text))

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(label("Statistics", "heading"))
        head.addWidget(self.words)
        head.addStretch(1)
        head.addWidget(self.copy_button)
        text = QWidget()
        lines = QVBoxLayout(text)
        lines.setContentsMargins(0, 0, 8, 0)
        lines.addWidget(self.verdict)
        lines.addWidget(self.warnings)
        lines.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidget(text)
        body = QHBoxLayout()
        body.setSpacing(16)
        body.addWidget(self.table, 1)
        body.addWidget(scroll, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 8, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addLayout(body, 1)

    def _copy(self) -> None:
        self.table.copy()
        self._context.notices.say("Table copied as tab-separated text.")


def _row(group: "GroupResult") -> SettingRow:
    counted, every = len(group.counted), len(group.samples)
    many = str(every) if counted == every else f"{counted} of {every}"
    found = [group.estimates.get(name) for name in COLUMNS]
    cells = [f"{number(each.value)} {bracket(each.interval)}".rstrip() if each else "–" for each in found]
    return SettingRow(group.label, (many, *cells), differs=True)
