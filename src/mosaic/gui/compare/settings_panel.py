"""The table of settings with its switch and its copy button."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QVBoxLayout, QWidget

from mosaic.gui.compare.settings_table import SettingsTable
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label
from mosaic.present.settings_diff import compare_settings

if TYPE_CHECKING:
    from mosaic.gui.context import Context


class SettingsPanel(QWidget):
    def __init__(self, context: "Context") -> None:
        super().__init__()
        self._context = context
        self._settings: dict[str, Mapping[str, Any] | None] = {}
        self._labels: dict[str, str] = {}
        self.heading = label("Settings that differ", "heading")
        self.all = QCheckBox("Show all settings")
        self.all.setObjectName("compare.all_settings")
        self.all.toggled.connect(self._refresh)
        self.table = SettingsTable()
        self.setMinimumHeight(120)
        self.words = label("", "muted", name="compare.settings_words")
        self.copy_button = button("Copy table", self._copy, "flat", "As tab-separated text", name="compare.copy")
        self._lay_out()

    def show_settings(self, settings: "Mapping[str, Mapping[str, Any] | None]", labels: Mapping[str, str]) -> None:
        self._settings, self._labels = dict(settings), dict(labels)
        self._refresh()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self.heading)
        head.addWidget(self.words)
        head.addStretch(1)
        head.addWidget(self.all)
        head.addWidget(self.copy_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 8, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addWidget(self.table, 1)

    def _refresh(self) -> None:
        rows = compare_settings(list(self._settings.values()))
        differing = [row for row in rows if row.differs]
        self.heading.setText("All settings" if self.all.isChecked() else "Settings that differ")
        self.table.show_rows(rows if self.all.isChecked() else differing, list(self._labels.values()))
        self.table.setVisible(bool(self.all.isChecked() or differing))
        same = "All settings are the same." if rows and not differing and len(self._settings) > 1 else ""
        self.words.setText(same or (f"{len(differing)} of {len(rows)}" if rows else ""))

    def _copy(self) -> None:
        self.table.copy()
        self._context.notices.say("Table copied as tab-separated text.")
