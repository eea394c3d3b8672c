"""The overview of a run: why it failed, its facts, the newest episodes and the history of its state."""

from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QScrollArea, QVBoxLayout, QWidget

from mosaic.gui.run_tab.episodes import EpisodesCard
from mosaic.gui.run_tab.facts import FactsCard
from mosaic.gui.run_tab.failure import FailureCard
from mosaic.gui.run_tab.history import HistoryCard
from mosaic.gui.run_tab.results import ResultsCard
from mosaic.gui.run_tab.section import Section
from mosaic.present.scores import is_evaluation

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from mosaic.gui.context import Context
    from mosaic.gui.run_tab.source import RunSource

NARROW_PX = 900
CARDS_PX = 220  # the least height of the cards side by side


class OverviewSection(Section):
    needs_events: ClassVar[bool] = True

    def __init__(self, context: "Context", source: "RunSource") -> None:
        super().__init__(context, source)
        self.failure = FailureCard(context)
        self.results = ResultsCard(context)
        self.facts = FactsCard(context)
        self.episodes = EpisodesCard(context, source)
        self.history = HistoryCard()
        self._cards = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._lay_out()
        source.changed.connect(self._show)
        source.details_changed.connect(self._show_details)
        source.received.connect(self.episodes.receive)
        source.followed.connect(self.episodes.read)

    def enter(self) -> None:
        self._show()
        self._show_details()

    def leave(self) -> None:
        self.episodes.stop()

    def resizeEvent(self, event: "QResizeEvent") -> None:
        super().resizeEvent(event)
        is_narrow = event.size().width() < NARROW_PX
        direction = QBoxLayout.Direction.TopToBottom if is_narrow else QBoxLayout.Direction.LeftToRight
        self._cards.setDirection(direction)

    def _show(self) -> None:
        run = self.source.run
        if run and self.isVisible():
            self.facts.show_run(run)
            self.failure.show_run(run)
            self.history.show_run(run)

    def _show_details(self) -> None:
        run = self.source.run
        if run and self.isVisible():
            self.facts.show_details(run)
            self.results.setVisible(is_evaluation(run))
            if is_evaluation(run):
                self.results.show_run(run)

    def _lay_out(self) -> None:
        self._cards.setSpacing(8)
        self._cards.addWidget(self.facts, 5)
        self._cards.addWidget(self.episodes, 5)
        self._cards.addWidget(self.history, 6)
        for card in (self.facts, self.episodes, self.history):
            card.setMinimumHeight(CARDS_PX)
        content = QWidget()
        inner = QVBoxLayout(content)
        inner.setContentsMargins(16, 8, 16, 8)
        inner.setSpacing(8)
        inner.addWidget(self.failure)
        inner.addWidget(self.results)
        inner.addLayout(self._cards, 1)
        area = QScrollArea(widgetResizable=True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(content)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(area)
        self.results.hide()
