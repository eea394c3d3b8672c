"""Which run to continue or to evaluate, and which of its checkpoints."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QComboBox, QFileDialog

from mosaic.catalog.derived import BEST
from mosaic.gui.new_run.editors import Editor, keep_wheel_for_scrolling
from mosaic.gui.new_run.field_row import FieldRow
from mosaic.gui.widgets.buttons import button
from mosaic.present.checkpoints import CheckpointFile, find_checkpoints
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context

NEWEST = "The newest"
MOST_RUNS = 500


class ListEditor(Editor):
    """A list whose entries stand for something else: a run's id, a path."""

    def __init__(self, *more: "QComboBox | object") -> None:
        self.box = QComboBox()
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.setMinimumContentsLength(6)
        super().__init__(self.box, *more)  # type: ignore[arg-type]
        keep_wheel_for_scrolling(self.box)
        self.box.activated.connect(lambda _: self.edited.emit(self.text()))

    def text(self) -> str:
        return str(self.box.currentData() or "")

    def set_text(self, text: str) -> None:
        self.box.setCurrentIndex(max(0, self.box.findData(text)))

    def show_entries(self, entries: list[tuple[str, str]]) -> None:
        """Words and what they stand for. The choice is kept if it is still there."""
        chosen = self.text()
        self.box.clear()
        for words, value in entries:
            self.box.addItem(words, value)
        self.set_text(chosen)


class RunChoice(QObject):
    run_chosen = Signal(str)
    changed = Signal()

    def __init__(self, context: "Context", name: str) -> None:
        super().__init__()
        self._context = context
        self._found: list[CheckpointFile] = []
        self._worker = ""
        self._wanted = ""  # the run that the sheet was opened for
        self._browsed = ""
        self._runs, self._files = ListEditor(), ListEditor(button("Browse…", self._browse))
        self.run_row = FieldRow("Run", self._runs, name=f"{name}.run")
        self.file_row = FieldRow("Checkpoint", self._files, name=f"{name}.checkpoint")
        self.run_row.edited.connect(self._choose)
        self.file_row.edited.connect(lambda _: self.changed.emit())

    @property
    def run_id(self) -> str:
        return self._runs.text()

    @property
    def checkpoint(self) -> str:
        return self._files.text()

    def load(self, worker: str, run_id: str = "") -> None:
        """List the runs of this worker that have checkpoints. `run_id`: the one to choose."""
        self._worker, self._wanted, self._browsed = worker.partition("@")[0], run_id, ""
        root = self._context.root
        if root is None:
            self._show([])
        else:
            self._context.hub.compute(lambda: find_checkpoints(root), self._show, None, owner=self)

    def choose_file(self, path: str) -> None:
        """Use this file, which need not be in a run's folder."""
        self._browsed = path
        self._show_files()
        self._files.set_text(path)
        self.changed.emit()

    def _show(self, found: list[CheckpointFile]) -> None:
        self._found = found
        runs = self._listed()
        steps = {one.run_id: one.step for one in reversed(found) if not one.is_best}
        self._runs.show_entries([(_words(run, steps.get(run.run_id)), run.run_id) for run in runs])
        if self._wanted:
            self._runs.set_text(self._wanted)
        self._runs.box.setEnabled(bool(runs))
        self.run_row.set_help("" if runs else f"No run of {self._worker} has a checkpoint on this machine yet.")
        self._choose(self.run_id)

    def _listed(self) -> "list[Run]":
        """Runs of the worker with checkpoints, newest first; elsewhere, where files cannot be seen, all of them."""
        runs = self._context.hub.runs
        having = [runs[one.run_id] for one in self._found if one.run_id in runs]
        if self._context.root is None:
            having = sorted(runs.values(), key=lambda run: -run.created_at)
        own = {run.run_id: run for run in having if run.worker_name == self._worker}
        wanted = runs.get(self._wanted)
        if wanted is not None:
            own = {wanted.run_id: wanted, **own}
        return list(own.values())[:MOST_RUNS]

    def _choose(self, run_id: str) -> None:
        self._browsed = ""
        self._show_files()
        self.run_chosen.emit(run_id)
        self.changed.emit()

    def _show_files(self) -> None:
        own = [one for one in self._found if one.run_id == self.run_id]
        best = next((one for one in own if one.is_best), None)
        entries = [(NEWEST, "")]
        entries += [(f"The best ({best.label.removesuffix(' · best')})", BEST)] if best else []
        entries += [(one.label, one.path) for one in own if not one.is_best]
        entries += [(printable(self._browsed), self._browsed)] if self._browsed else []
        self._files.show_entries(entries)

    def _browse(self) -> None:
        run = self._context.hub.runs.get(self.run_id)
        dialog = QFileDialog(self._files, "Choose a checkpoint", run.run_dir if run else "")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.AnyFile)
        dialog.fileSelected.connect(self.choose_file)
        dialog.open()


def _words(run: "Run", step: int | None) -> str:
    """`cartpole · step 50,000 · 7Q2M4K`."""
    state = "" if run.state.is_over else " (running)"
    parts = (f"{run.name}{state}", f"step {step:,}" if step is not None else "", run.run_id[-6:])
    return printable(" · ".join(filter(None, parts)))
