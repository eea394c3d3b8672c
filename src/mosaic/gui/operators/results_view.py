"""The results of an evaluation: tables, sentences, warnings, and the ways to the report and the demonstrations."""

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from mosaic.gui.operators.stored_results import Found, fetch, found_in
from mosaic.gui.operators.text_table import TextTable
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.problem import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from mosaic.client import Run
    from mosaic.client.events import Event
    from mosaic.gui.context import Context


class ResultsView(QWidget):
    def __init__(self, context: "Context") -> None:
        super().__init__()
        self.setObjectName("operators.results")
        self._context = context
        self._found: Found | None = None
        self._title = label("Results", "heading")
        self._status = label("", "muted", wrap=True, name="operators.results.status")
        self._problem = Problem()
        self._copy = button("Copy as text", self._copy_all, tip="Tab-separated, for a spreadsheet")
        self._copy.setObjectName("operators.copy")
        self._report = button("Open report", self._open_report, "primary", name="operators.report")
        self._folder = button("Demonstrations", self._open_demonstrations, name="operators.demonstrations")
        self._body = QVBoxLayout()
        self._body.setSpacing(8)
        self._parts: list[QWidget] = []
        self.tables: list[TextTable] = []
        self._arrange()
        self._offer(None)

    def _arrange(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self._title)
        head.addStretch(1)
        for widget in (self._copy, self._folder, self._report):
            head.addWidget(widget)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 8, 0)
        column.setSpacing(8)
        column.addWidget(self._status)
        column.addWidget(self._problem)
        column.addLayout(self._body)
        column.addStretch(1)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setWidget(inside)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(head)
        layout.addWidget(scroll, 1)

    def load(self, run_id: str) -> None:
        """Read the results; what is shown stays until they are here."""
        if self._found is None:
            self._status.setText("Reading the results…")
            self._status.show()
        self._context.hub.ask(lambda client: fetch(client, run_id), self._compute, self._fail, owner=self)

    def _compute(self, fetched: "tuple[Run, list[Event]]") -> None:
        run, events = fetched
        if not events:
            self._status.setText("No episode was finished, so there are no results.")
            self._status.show()
            return
        is_remote = self._context.root is None
        self._context.hub.compute(partial(found_in, run, events, is_remote), self._show, self._fail, owner=self)

    def _show(self, found: Found) -> None:
        self._status.hide()
        self._problem.clear()
        self._clear()
        self._found = found
        self._offer(found)
        for place, table in enumerate(found.results.tables):
            self._add(label(table.title, "caption"))
            made = TextTable(f"operators.results.{place}", table.title)
            made.show_table(table)
            self.tables.append(made)
            self._add(made)
        for text in found.results.sentences:
            self._add(label(text, wrap=True))
        for text in found.results.warnings:
            self._add(label(f"⚠ {text}", "muted", wrap=True))

    def _add(self, widget: QWidget) -> None:
        self._parts.append(widget)
        self._body.addWidget(widget)

    def _clear(self) -> None:
        for widget in self._parts:
            self._body.removeWidget(widget)
            widget.deleteLater()
        self._parts, self.tables = [], []

    def _offer(self, found: Found | None) -> None:
        self._copy.setVisible(found is not None)
        self._report.setVisible(found is not None and found.report is not None)
        self._folder.setVisible(found is not None and found.demonstrations is not None)

    def _fail(self, error: Exception) -> None:
        self._status.hide()
        self._problem.show_problem("The results cannot be read.", str(error))

    def _copy_all(self) -> None:
        if self._found:
            QGuiApplication.clipboard().setText(self._found.results.tsv())
            self._context.notices.say("Copied the results.")

    def _open_report(self) -> None:
        if self._found and self._found.report:
            self._open(self._found.report)

    def _open_demonstrations(self) -> None:
        if self._found and self._found.demonstrations:
            self._open(self._found.demonstrations)

    def _open(self, path: "Path") -> None:
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(path))):
            self._context.notices.problem(f"No program of this desktop opens {path}.")
