"""Chooses the worker, and asks it for its schema."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal

from mosaic.catalog.descriptor import Descriptor
from mosaic.gui.new_run.run_choice import ListEditor
from mosaic.present.worker_choice import WorkerEntry, describe, first_choice, list_workers

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.hub.job import Job

LAST = "new_run/worker"


class WorkerBox(ListEditor):
    asking = Signal(object)  # WorkerEntry
    described = Signal(object, object)  # WorkerEntry, Descriptor
    failed = Signal(str)

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self._context = context
        self._entries: dict[str, WorkerEntry] = {}
        self._then: Callable[[], None] | None = None
        self._job: Job | None = None
        self.edited.connect(lambda _: self._ask())

    def load(self, wanted: str = "", then: Callable[[], None] | None = None) -> None:
        """List the workers and show one of them. `then` is called once it has described itself."""
        self._then = then
        root = self._context.root
        if root is None:
            self._show_elsewhere(wanted)
            return
        hub = self._context.hub
        hub.compute(
            lambda: list_workers(root),
            lambda found: self._show(found, wanted),
            lambda error: self.failed.emit(str(error)),
            owner=self,
        )

    def _show(self, entries: list[WorkerEntry], wanted: str) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self.show_entries([(_words(entry), entry.name) for entry in entries])
        last = self._context.memory.value(LAST, "")
        self.set_text(wanted if wanted in self._entries else first_choice(entries, last))
        self._ask()

    def _show_elsewhere(self, wanted: str) -> None:
        """The catalog of another machine cannot be read: offer the workers of its runs, and any name that is typed."""
        names = sorted({run.worker_name for run in self._context.hub.runs.values()})
        self._entries = {
            name: WorkerEntry(name, True) for name in dict.fromkeys((*([wanted] if wanted else []), *names))
        }
        self.show_entries([(name, name) for name in self._entries])
        if not self.box.isEditable():
            self.box.setEditable(True)
            self.box.editTextChanged.connect(lambda text: self._tell(WorkerEntry(text.strip(), True), Descriptor()))
        self.set_text(wanted)
        self._tell(WorkerEntry(self.text(), True), Descriptor())

    def text(self) -> str:
        return self.box.currentText().strip() if self.box.isEditable() else super().text()

    def _ask(self) -> None:
        entry, root = self._entries.get(self.text()), self._context.root
        if self._job:
            self._job.cancel()
        if entry is None or root is None:
            return
        if not entry.is_installed:
            self._tell(entry, Descriptor())
            return
        self._context.memory.remember(LAST, entry.name)
        self.asking.emit(entry)
        self._job = self._context.hub.compute(
            lambda: describe(entry.name, root),
            lambda found: self._tell(entry, found),
            lambda error: self._tell(entry, Descriptor(problem=str(error))),
            owner=self,
        )

    def _tell(self, entry: WorkerEntry, descriptor: Descriptor) -> None:
        self.described.emit(entry, descriptor)
        if self._then:
            then, self._then = self._then, None
            then()


def _words(entry: WorkerEntry) -> str:
    if not entry.is_installed:
        return f"{entry.name} (not installed)"
    return f"{entry.name} (broken)" if entry.problem else entry.name
