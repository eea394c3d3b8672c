"""The tab of one run: a header, and sections of which only the visible one works."""

from typing import TYPE_CHECKING

from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from mosaic.gui.run_tab.analytics import AnalyticsTabSection
from mosaic.gui.run_tab.curves import CurvesSection
from mosaic.gui.run_tab.frames import FramesSection
from mosaic.gui.run_tab.header import RunHeader
from mosaic.gui.run_tab.log import LogSection
from mosaic.gui.run_tab.missed import MissedNote
from mosaic.gui.run_tab.overview import OverviewSection
from mosaic.gui.run_tab.section import Section
from mosaic.gui.run_tab.settings import SettingsSection
from mosaic.gui.run_tab.source import RunSource, connection_words
from mosaic.gui.widgets.empty import EmptyState
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.problem import Problem
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.hub.connection import Connection

SECTIONS: "dict[str, tuple[str, type[Section]]]" = {
    "overview": ("Overview", OverviewSection),
    "curves": ("Curves", CurvesSection),
    "frames": ("Frames", FramesSection),
    "log": ("Log", LogSection),
    "settings": ("Settings", SettingsSection),
    "analytics": ("Analytics", AnalyticsTabSection),
}


class RunTab(QWidget):
    """A section is made when it is first chosen."""

    def __init__(self, context: "Context", run_id: str, section: str = "") -> None:
        super().__init__()
        self.run_id = run_id
        self._context = context
        self._sections: dict[str, Section] = {}
        self._entered: Section | None = None
        self.source = RunSource(context, run_id, self)
        self.header = RunHeader(context, [title for title, _ in SECTIONS.values()])
        self.lost = label("", "muted", wrap=True, name="run.lost")
        self.lost.setContentsMargins(16, 4, 16, 4)
        self.problem = Problem()
        self.pages = QStackedWidget()
        self.gone = EmptyState("This run was deleted", "Its files are gone. Other runs are not affected.")
        self.gone.setObjectName("run.gone")
        self.setFocusProxy(self.header.tabs)
        self._lay_out()
        self._connect()
        self.show_section(section or self._first_section())
        self._show_run()
        self._show_connection(context.hub.connection)

    def show_section(self, name: str) -> None:
        """`name`: overview, curves, frames, log, settings or analytics; another one is ignored."""
        if name in SECTIONS:
            self.header.tabs.setCurrentIndex(list(SECTIONS).index(name))
            self._choose(list(SECTIONS).index(name))

    @property
    def section(self) -> str:
        """The name of the section that is shown."""
        return list(SECTIONS)[self.header.tabs.currentIndex()]

    def section_widget(self, name: str) -> Section:
        if name not in self._sections:
            self._sections[name] = SECTIONS[name][1](self._context, self.source)
            self.pages.addWidget(self._sections[name])
        return self._sections[name]

    def focus_search(self) -> None:
        self.section_widget(self.section).focus_search()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.source.start()
        self._enter(self.section_widget(self.section))

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._leave()
        self.source.stop()

    def _first_section(self) -> str:
        """A failure is explained first; a training that runs shows its curves."""
        run = self.source.run
        return "curves" if run and run.state is RunState.EXECUTING and run.area != "evals" else "overview"

    def _choose(self, index: int) -> None:
        widget = self.section_widget(list(SECTIONS)[index])
        self.pages.setCurrentWidget(widget)
        if self.isVisible():
            self._enter(widget)

    def _enter(self, section: Section) -> None:
        if section is self._entered or self.source.is_deleted:
            return
        self._leave()
        self._entered = section
        section.enter()
        if section.needs_events:
            self.source.follow()

    def _leave(self) -> None:
        if self._entered:
            self.source.unfollow()
            self._entered.leave()
            self._entered = None

    def _show_run(self) -> None:
        if self.source.run:
            self.header.show_run(self.source.run)

    def _show_connection(self, connection: "Connection") -> None:
        words = connection_words(connection)
        self.lost.setText(words)
        self.lost.setVisible(bool(words))
        for made in self.header.buttons.values():
            made.setDisabled(bool(words))
        if not words:
            self.problem.clear()
            self._show_run()  # a cancel that was requested stays disabled

    def _become_gone(self) -> None:
        self._leave()
        self.header.setDisabled(True)
        self.problem.clear()
        self.pages.setCurrentWidget(self.gone)

    def _connect(self) -> None:
        self.source.changed.connect(self._show_run)
        self.source.deleted.connect(self._become_gone)
        self.source.failed.connect(self.problem.show_problem)
        self.source.followed.connect(self.problem.clear)
        self.source.connection_changed.connect(self._show_connection)
        self.header.section_chosen.connect(self._choose)

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(self.lost)
        layout.addWidget(self.problem)
        layout.addWidget(MissedNote(self.source))
        layout.addWidget(self.pages, 1)
        self.pages.addWidget(self.gone)
