"""WorkersPage: the workers of this machine; install, test and remove them."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QSplitter, QStackedLayout, QVBoxLayout, QWidget

from mosaic.catalog import place
from mosaic.catalog.install import remove
from mosaic.catalog.progress import Progress
from mosaic.client.endpoint import by_ssh
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.confirm import ask_to_confirm
from mosaic.gui.widgets.empty import EmptyState
from mosaic.gui.widgets.labels import label
from mosaic.gui.workers.details import WorkerDetails
from mosaic.gui.workers.table import WorkerTable
from mosaic.gui.workers.task import WorkerTask
from mosaic.present.worker_rows import AVAILABLE, WorkerRow, worker_rows

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.model.rundir import StateRoot

SPLIT = "workers/split"
ELSEWHERE = "Workers of another machine are managed there: {mosaic} worker list, {mosaic} worker install NAME."


class WorkersPage(QWidget):
    """Installing and testing happen in processes of their own; several may run, and they outlive the window."""

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self._context = context
        self._tasks: dict[str, WorkerTask] = {}
        self._folders: dict[str, str] = {}  # being installed, by the name of the folder
        self._wanted = ""
        self.setObjectName("workers.page")
        self.table = WorkerTable(context.theme)
        self.details = WorkerDetails(context)
        self.waiting = EmptyState("Looking for workers…")
        self._stack = QStackedLayout(self)
        if context.root is None:
            host = context.host or "the other machine"
            words = ELSEWHERE.format(mosaic=by_ssh(context.host) if context.host else "mosaic")
            self._stack.addWidget(EmptyState(f"The workers of {host}", words))
            return
        self._root: StateRoot = context.root
        self._stack.addWidget(self.waiting)
        self._stack.addWidget(self._build())
        self.table.chosen.connect(self._show_details)
        self.details.install_asked.connect(self._install)
        self.details.remove_asked.connect(self._ask_to_remove)
        self.details.test_asked.connect(self._test)
        self.details.run_asked.connect(lambda name: context.go.new_run("train", worker=name))

    def _build(self) -> QWidget:
        left = QWidget()
        head = QHBoxLayout()
        head.setContentsMargins(16, 12, 12, 8)
        head.addWidget(label("Workers", "title"), 1)
        head.addWidget(button("Refresh", self.refresh, "flat", "Look for workers again", "F5", "workers.refresh"))
        tip = "Install a worker from the folder with its pyproject.toml"
        head.addWidget(button("Install from folder…", self._ask_for_folder, tip=tip, name="workers.folder"))
        layout = QVBoxLayout(left)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(self.table, 1)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.addWidget(left)
        self._splitter.addWidget(self.details)
        self._splitter.setSizes([560, 520])
        self._splitter.setChildrenCollapsible(False)
        if state := self._context.memory.value(SPLIT):
            self._splitter.restoreState(state)
        self._splitter.splitterMoved.connect(
            lambda *_: self._context.memory.remember(SPLIT, self._splitter.saveState())
        )
        return self._splitter

    def show_worker(self, name: str) -> None:
        self._wanted = name
        self.table.select(name)

    def showEvent(self, event: object) -> None:
        # Every time: a worker may have been installed in a terminal.
        self.refresh()

    def refresh(self) -> None:
        if self._context.root is not None:
            self._context.hub.compute(lambda: worker_rows(self._root), self._show, self._fail, owner=self)

    def _show(self, rows: list[WorkerRow]) -> None:
        known = {row.name for row in rows}
        offers = [WorkerRow(name, AVAILABLE, f"From {path}") for name, path in self._folders.items()]
        self.table.show_rows([*rows, *(row for row in offers if row.name not in known)], self._busy())
        self._stack.setCurrentIndex(1)
        if self._wanted:
            self.table.select(self._wanted)
            self._wanted = ""

    def _fail(self, error: Exception) -> None:
        self.waiting.set_text("The workers cannot be listed", str(error))
        self._stack.setCurrentIndex(0)

    def _show_details(self, name: str, environment: str) -> None:
        row = next((row for row in self.table.rows if (row.name, row.environment) == (name, environment)), None)
        if row:
            self.details.show_worker(row, self._tasks.get(name))

    # ---- install and test

    def _install(self, name: str, torch: str, is_again: bool) -> None:
        words = [
            "install",
            self._folders.get(name, name),
            *(["--torch", torch] if torch else []),
            *(["--upgrade"] if is_again else []),
        ]
        self._start(name, words)

    def _test(self, name: str) -> None:
        self._start(name, ["test", name])

    def _ask_for_folder(self) -> None:
        dialog = QFileDialog(self, "Install a worker from its folder")
        dialog.setObjectName("workers.folder_dialog")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self.install_folder)
        dialog.open()

    def install_folder(self, folder: str) -> None:
        """Install the worker of a folder. Until its name is known, its row has the name of the folder."""
        name = Path(folder).name
        self._folders[name] = folder
        self._start(name, ["install", folder])
        self._show(self.table.rows)
        self.table.select(name)

    def _start(self, name: str, words: list[str]) -> None:
        task = self._tasks.get(name)
        if task and task.is_running:
            return
        try:
            task = WorkerTask(self._root, name, words, parent=self)
        except OSError as error:
            self._context.notices.problem(f"{name} cannot be started: {error.strerror}.")
            return
        self._tasks[name] = task
        task.ended.connect(lambda is_done: self._end(name, is_done))
        self._mark_busy()

    def _mark_busy(self) -> None:
        self.table.show_rows(self.table.rows, self._busy())

    def _busy(self) -> dict[str, str]:
        return {name: task.words[0] for name, task in self._tasks.items() if task.is_running}

    def _end(self, name: str, is_done: bool) -> None:
        task = self._tasks[name]
        if task.is_cancelled:
            self._context.hub.compute(lambda: place.tidy_now(self._root.envs), failed=lambda _: None, owner=self)
        elif is_done and task.words[0] == "install":
            self._folders.pop(name, None)
            self._context.notices.say(f"{name} is installed.")
        elif not is_done:
            self._context.notices.problem(task.failure, "\n".join(task.lines))
        self.refresh()

    # ---- remove

    def _ask_to_remove(self, name: str) -> None:
        row = next((row for row in self.table.rows if row.name == name and not row.is_own), None)
        if row is None:
            return
        freed = f" This frees {row.size}." if row.size else ""
        sentence = f"Remove the environment of {row.name}?{freed} Its runs and their results are kept."
        ask_to_confirm(self, sentence, f"Remove {row.name}", lambda: self._remove(row))

    def _remove(self, row: WorkerRow) -> None:
        self._tasks.pop(row.name, None)
        notices = self._context.notices

        def tell(_: None) -> None:
            notices.say(f"Removed {row.name}.")
            self.refresh()

        work = partial(remove, self._root, row.environment, Progress())
        self._context.hub.compute(work, tell, lambda error: notices.problem(str(error)), owner=self)
