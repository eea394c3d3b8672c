"""Why a run failed: the reason in words, what to do, and the evidence."""

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label
from mosaic.present.autopsy import autopsy

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context

MOST_LINES = 12


class FailureCard(QFrame):
    """Hidden unless the run failed."""

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self.setProperty("kind", "problem-box")
        self._context = context
        self._run: Run | None = None
        self.reason = label("", "heading", wrap=True, name="run.reason")
        self.advice = label("", "muted", wrap=True, name="run.advice")
        self.evidence = QPlainTextEdit(readOnly=True)
        self.evidence.setObjectName("run.evidence")
        self.evidence.setProperty("kind", "mono")
        self.evidence.setAccessibleName("Last lines of the worker's output")
        self.evidence.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.again = button("Run again with these settings", self._run_again, "primary", name="run.again")
        self.log = button("See the log", self._see_log, "flat", name="run.see_log")
        self._lay_out()
        self.hide()

    def show_run(self, run: "Run") -> None:
        self._run = run
        found = autopsy(run)
        self.setVisible(found is not None)
        if found is None:
            return
        self.reason.setText(f"✕ {found.sentence}")
        self.advice.setText(found.advice)
        self.advice.setVisible(bool(found.advice))
        if found.evidence != self.evidence.toPlainText():  # keep the place and the selection of the reader
            self.evidence.setPlainText(found.evidence)
        lines = min(MOST_LINES, found.evidence.count("\n") + 1)
        room = 2 * int(self.evidence.document().documentMargin()) + 14  # and a horizontal scroll bar
        self.evidence.setFixedHeight(lines * self.evidence.fontMetrics().lineSpacing() + room)
        self.evidence.setVisible(bool(found.evidence))

    def _run_again(self) -> None:
        if self._run:
            self._context.go.new_run(mode="train", run_id=self._run.run_id)

    def _see_log(self) -> None:
        if self._run:
            self._context.go.open_run(self._run.run_id, "log")

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.again)
        buttons.addWidget(self.log)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 10, 12, 10)
        layout.setSpacing(6)
        layout.addWidget(self.reason)
        layout.addWidget(self.advice)
        layout.addWidget(self.evidence)
        layout.addLayout(buttons)
