"""Measures the folders of runs in the background, one batch after the other."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from mosaic.present.folder_size import usage_of_path

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context

BATCH = 16  # folders


class SizeMeter(QObject):
    """The sizes of runs that are over and on this machine. Each is measured once."""

    measured = Signal()

    def __init__(self, context: "Context", sizes: dict[str, int], parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self._sizes = sizes
        self._waiting: dict[str, str] = {}  # run id → folder
        self._is_busy = False

    def want(self, runs: "Iterable[Run]") -> None:
        """Measure these next. What was wanted before and is not yet measured is forgotten: it was scrolled away."""
        if self._context.root is None:
            return
        self._waiting = {
            run.run_id: run.run_dir
            for run in runs
            if run.state.is_over and run.run_id not in self._sizes and run.run_dir
        }
        self._continue()

    @property
    def left(self) -> int:
        return len(self._waiting)

    def _continue(self) -> None:
        if self._is_busy or not self._waiting:
            return
        batch = {run_id: self._waiting.pop(run_id) for run_id in list(self._waiting)[:BATCH]}
        self._is_busy = True
        self._context.hub.compute(lambda: measure(batch), self._take, self._fail, owner=self)

    def _take(self, sizes: dict[str, int]) -> None:
        self._sizes.update(sizes)
        self._is_busy = False
        self._continue()
        self.measured.emit()

    def _fail(self, _: Exception) -> None:
        self._is_busy = False  # these stay empty; the next ones may be readable
        self._continue()


def measure(folders: dict[str, str]) -> dict[str, int]:
    return {run_id: usage_of_path(Path(folder)) for run_id, folder in folders.items()}
