"""The middle of the window: the open place in the first tab, and a tab per opened run."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QStackedWidget, QTabBar, QVBoxLayout, QWidget

from mosaic.gui.places import PLACES, build
from mosaic.gui.widgets.buttons import icon_button
from mosaic.gui.widgets.tip import plain_tip
from mosaic.present.run_cells import GLYPH, KIND, name_of

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context
    from mosaic.gui.hub.connection import RunsChange

TITLE_LETTERS = 28
TITLES = {place.key: place.title for place in PLACES}


class Centre(QWidget):
    changed = Signal()  # another place or tab is shown
    renamed = Signal()  # the name of the run that is shown may be another one
    built = Signal(str)  # a place was shown for the first time

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self._context = context
        self._pages: dict[str, Any] = {}
        self._runs: dict[str, QWidget] = {}  # run id → tab, in the order of the tabs
        self.place = ""
        self.bar = QTabBar(expanding=False, drawBase=False, movable=False, usesScrollButtons=True)
        self.bar.setObjectName("window.tabs")
        self.bar.setAccessibleName("Open runs")
        self.bar.setElideMode(Qt.TextElideMode.ElideRight)
        self.bar.addTab("")
        self.bar.hide()
        self.stack = QStackedWidget()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.bar)
        layout.addWidget(self.stack, 1)
        self.bar.currentChanged.connect(self._show_tab)
        context.hub.runs_changed.connect(self._retitle)

    # ---- places

    def show_place(self, key: str) -> Any:
        """Show a place in the first tab; returns its page."""
        is_new = key not in self._pages
        if is_new:
            self._pages[key] = build(key, self._context)
            self.stack.addWidget(self._pages[key])
        self.place = key
        self.bar.setTabText(0, TITLES[key])
        if is_new:
            self.built.emit(key)
        self._select(0)
        return self._pages[key]

    def page(self, key: str) -> Any:
        """The page of a place, or None if it was never shown."""
        return self._pages.get(key)

    # ---- runs

    def open_run(self, run_id: str, section: str = "") -> None:
        if run_id not in self._runs:
            self._add_tab(run_id)
        if section:
            self._runs[run_id].show_section(section)  # type: ignore[attr-defined]
        self._select(1 + list(self._runs).index(run_id))

    def close_run(self, run_id: str) -> None:
        index = 1 + list(self._runs).index(run_id)
        tab = self._runs.pop(run_id)
        self.bar.removeTab(index)
        self.stack.removeWidget(tab)
        tab.deleteLater()
        self.bar.setVisible(bool(self._runs))
        self._show_tab(self.bar.currentIndex())

    def close_current(self) -> None:
        if self.run_id:
            self.close_run(self.run_id)

    def go_back(self) -> bool:
        """Leave the tab of a run for the place behind it. False if none is shown."""
        if not self.run_id:
            return False
        self._select(0)
        return True

    @property
    def run_id(self) -> str:
        """The run whose tab is shown; empty in a place."""
        index = self.bar.currentIndex()
        return list(self._runs)[index - 1] if index > 0 else ""

    @property
    def current(self) -> QWidget | None:
        return self.stack.currentWidget()

    def _add_tab(self, run_id: str) -> None:
        from mosaic.gui.run_tab.tab import RunTab

        tab = RunTab(self._context, run_id)
        self._runs[run_id] = tab
        self.stack.addWidget(tab)
        index = self.bar.addTab("")
        close = icon_button(
            self._context.theme, "close", "Close the tab", self._closer(run_id), f"window.close.{run_id}"
        )
        self.bar.setTabButton(index, QTabBar.ButtonPosition.RightSide, close)
        self._title(run_id)
        self.bar.show()

    def _closer(self, run_id: str) -> Callable[[], None]:
        return lambda: self.close_run(run_id)

    def _select(self, index: int) -> None:
        if self.bar.currentIndex() == index:
            self._show_tab(index)
        self.bar.setCurrentIndex(index)

    def _show_tab(self, index: int) -> None:
        shown = list(self._runs.values())[index - 1] if index > 0 else self._pages.get(self.place)
        if shown is not None:
            self.stack.setCurrentWidget(shown)
            shown.setFocus()  # else Qt gives the keyboard to the first button of the window
        self.changed.emit()

    def _retitle(self, change: "RunsChange") -> None:
        changed = {run.run_id for run in change.runs}
        for run_id in self._runs:
            if run_id in changed:
                self._title(run_id)
        if self.run_id in changed:
            self.renamed.emit()

    def _title(self, run_id: str) -> None:
        run = self._context.hub.runs.get(run_id)
        text = _title_of(run) if run else run_id
        index = 1 + list(self._runs).index(run_id)
        if self.bar.tabText(index) != text:
            self.bar.setTabText(index, text)
            self.bar.setTabToolTip(index, plain_tip(f"{name_of(run) if run else ''}\n{run_id}".strip()))


def _title_of(run: "Run") -> str:
    name = name_of(run)
    short = name if len(name) <= TITLE_LETTERS else f"{name[: TITLE_LETTERS - 1]}…"
    # In a tab's text an ampersand would mark a shortcut.
    return f"{GLYPH[KIND[run.state]]} {short}".replace("&", "&&")
