"""The progress of an install or a test: a bar, the current phase, and everything that was printed."""

from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QProgressBar, QVBoxLayout, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.elided import ElidedLabel
from mosaic.gui.widgets.fold import Fold
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.problem import Problem
from mosaic.gui.workers.task import WorkerTask

LOG_PX = 160
TITLES = {"install": "Installing {}", "test": "Testing {} against the contract"}
DONE = {"install": "✓ {} is installed.", "test": "✓ {} passes."}


class ProgressCard(QWidget):
    """Shows one task; hidden without one."""

    def __init__(self) -> None:
        super().__init__()
        self._task: WorkerTask | None = None
        self._shown_lines = 0
        self.title = label("", "heading")
        self.cancel = button("Cancel", self._cancel, name="workers.cancel")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("Progress")
        self.phase = ElidedLabel("", "muted")
        self.problem = Problem()
        self.log = QPlainTextEdit(readOnly=True)
        self.log.setProperty("kind", "mono")
        self.log.setAccessibleName("Output")
        self.log.setMinimumHeight(LOG_PX)
        self.fold = Fold("Output", self.log)
        head = QHBoxLayout()
        head.addWidget(self.title, 1)
        head.addWidget(self.cancel)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 8, 0, 0)
        layout.setSpacing(8)
        layout.addLayout(head)
        for widget in (self.bar, self.phase, self.problem, self.fold):
            layout.addWidget(widget)
        self.setVisible(False)

    def show_task(self, task: WorkerTask | None) -> None:
        if self._task is task:
            return
        if self._task:
            self._task.progressed.disconnect(self._write)
        self._task = task
        self._shown_lines = 0
        self.log.clear()
        self.setVisible(task is not None)
        if task:
            task.progressed.connect(self._write)
            self.fold.set_open(task.words[0] == "test")
            self._write()

    def _write(self) -> None:
        task = self._task
        if task is None:
            return
        for line in task.lines[self._shown_lines :]:
            self.log.appendPlainText(line)
        self._shown_lines = len(task.lines)
        self.cancel.setVisible(task.is_running)
        self.bar.setVisible(task.is_running)
        self.phase.setVisible(task.is_running)
        self.problem.clear()
        if task.is_running:
            self.title.setText(TITLES[task.words[0]].format(task.name))
            self.phase.setText(task.phase)
            self._write_bar(task.fraction)
        else:
            self._write_end(task)

    def _write_bar(self, fraction: float | None) -> None:
        self.bar.setRange(0, 0 if fraction is None else 100)
        if fraction is not None:
            self.bar.setValue(round(fraction * 100))

    def _write_end(self, task: WorkerTask) -> None:
        if task.has_succeeded:
            self.title.setText(DONE[task.words[0]].format(task.name))
        elif task.is_cancelled:
            self.title.setText("Cancelled. What was installed before is unchanged.")
        else:
            self.title.setText("✕ Failed")
            self.problem.show_problem(task.failure)

    def _cancel(self) -> None:
        if self._task:
            self._task.cancel()
