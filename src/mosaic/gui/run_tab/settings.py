"""The settings in force of a run, where it came from, and its config."""

import json
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPlainTextEdit, QSplitter, QVBoxLayout, QWidget

from mosaic.gui.run_tab.section import Section
from mosaic.gui.run_tab.text_table import TextTable
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.fold import Fold
from mosaic.gui.widgets.labels import label
from mosaic.model.rundir import RunDir
from mosaic.present import run_facts
from mosaic.present.provenance_rows import MOST_BYTES, packages, provenance_rows
from mosaic.present.run_files import read_run_json
from mosaic.present.settings_rows import SettingRow, settings_rows

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.run_tab.source import RunSource

TEXT_PX = 200


class SettingsSection(Section):
    def __init__(self, context: "Context", source: "RunSource") -> None:
        super().__init__(context, source)
        self._rows: list[SettingRow] = []
        self.search = QLineEdit(placeholderText="Search settings", clearButtonEnabled=True)
        self.search.setObjectName("settings.search")
        self.search.setAccessibleName("Search settings")
        self.search.textChanged.connect(self._filter)
        self.note = label("", "muted", wrap=True, name="settings.note")
        self.table = TextTable(("Setting", "Value", "From"), stretch=1, name="settings.table")
        self.table.setAccessibleName("Settings in force")
        self.table.setColumnWidth(0, 220)
        self.origin = TextTable(("What", "Value"), stretch=1, name="settings.provenance")
        self.origin.setAccessibleName("Provenance")
        self.origin.setColumnWidth(0, 120)
        self.no_origin = label("", "muted", wrap=True, name="settings.no_provenance")
        self.packages = _text("Packages of the worker's environment", "settings.packages")
        self.config = _text("The run's config as JSON", "settings.config")
        self._lay_out()
        source.details_changed.connect(self._show)

    def enter(self) -> None:
        self._show()
        run = self.source.run
        if run and run.run_dir and self.context.root is not None:
            path = RunDir(run.run_dir).provenance
            self.context.hub.compute(lambda: read_run_json(path, MOST_BYTES), self._show_origin, owner=self)
        elif self.context.root is None:
            self.no_origin.setText(f"The files of this run are on {self.context.host or 'another machine'}.")

    def focus_search(self) -> None:
        self.search.setFocus()
        self.search.selectAll()

    def _show(self) -> None:
        run = self.source.run
        if run is None or not self.isVisible():
            return
        rows = settings_rows(run)
        # Those that were given come first: they are what the user chose.
        self._rows = sorted(rows, key=lambda row: (not row.is_given, row.key))
        self.note.setText(self._note(bool(rows), run_facts.unchecked(run)))
        self.note.setVisible(bool(self.note.text()))
        config = json.dumps(run.config, indent=2, ensure_ascii=False) if run.config else ""
        if config != self.config.toPlainText():
            self.config.setPlainText(config)
        self._filter()

    def _note(self, has_settings: bool, unchecked: str) -> str:
        if not has_settings:
            return "This run has no recorded settings. Its config is below."
        return f"These settings are {unchecked}." if unchecked else ""

    def _filter(self) -> None:
        wanted = self.search.text().strip().lower()
        found = [row for row in self._rows if wanted in row.path.lower() or wanted in row.value.lower()]
        strong = {index for index, row in enumerate(found) if row.is_given}
        self.table.rows.set_rows(
            [(row.key, row.value, "given" if row.is_given else "default") for row in found], strong
        )

    def _show_origin(self, found: dict[str, Any] | None) -> None:
        rows = provenance_rows(found or {})
        self.origin.rows.set_rows(rows)
        self.packages.setPlainText("\n".join(packages(found or {})))
        self.no_origin.setText("" if rows else "Nothing is recorded yet: a run records its provenance when it starts.")
        self.no_origin.setVisible(not rows)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(label("Settings in force", "heading"))
        head.addStretch(1)
        head.addWidget(self.search)
        head.addWidget(button("Copy", self._copy, tip="Copy the table as tab-separated text", name="settings.copy"))
        left = _column(head, self.note, self.table)
        right = QWidget()
        column = QVBoxLayout(right)
        column.setContentsMargins(8, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(label("Provenance", "heading"))
        column.addWidget(self.no_origin)
        column.addWidget(self.origin, 1)
        column.addWidget(Fold("Packages", self.packages))
        column.addWidget(Fold("Config", self.config))
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(left)
        split.addWidget(right)
        split.setChildrenCollapsible(False)
        split.setSizes([640, 560])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 8, 16, 8)
        layout.addWidget(split)

    def _copy(self) -> None:
        self.table.copy_rows()
        self.context.notices.say("Copied the settings.")


def _column(head: QHBoxLayout, *widgets: QWidget) -> QWidget:
    made = QWidget()
    column = QVBoxLayout(made)
    column.setContentsMargins(0, 0, 8, 0)
    column.setSpacing(8)
    column.addLayout(head)
    for widget in widgets:
        column.addWidget(widget)
    return made


def _text(title: str, name: str) -> QPlainTextEdit:
    made = QPlainTextEdit(readOnly=True)
    made.setProperty("kind", "mono")
    made.setAccessibleName(title)
    made.setObjectName(name)
    made.setFixedHeight(TEXT_PX)
    return made
