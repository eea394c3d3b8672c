"""Opens places of the window. Pages are given it before the window exists."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosaic.gui.window import Window


class WindowNavigator:
    def __init__(self) -> None:
        self._window: Window | None = None

    def lead(self, window: "Window") -> None:
        self._window = window

    @property
    def window(self) -> "Window":
        assert self._window is not None, "app.py builds the window before any page is shown"
        return self._window

    def open_run(self, run_id: str, section: str = "") -> None:
        self.window.centre.open_run(run_id, section)

    def show_runs(self, select: str = "") -> None:
        page = self.window.centre.show_place("runs")
        if select:
            page.select(select)

    def new_run(
        self, mode: str = "train", worker: str = "", run_id: str = "", settings: Mapping[str, Any] | None = None
    ) -> None:
        self.window.sheet.open(mode, worker, run_id, settings)

    def compare(self, run_ids: Sequence[str]) -> None:
        self.window.centre.show_place("compare").set_runs(list(run_ids))

    def show_operators(self, run_id: str = "") -> None:
        page = self.window.centre.show_place("operators")
        if run_id:
            page.show_run(run_id)

    def show_workers(self, name: str = "") -> None:
        page = self.window.centre.show_place("workers")
        if name:
            page.show_worker(name)
