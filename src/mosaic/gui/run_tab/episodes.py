"""The newest episodes of a run. A reader who has scrolled down is not disturbed by new ones."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStackedWidget

from mosaic.gui.run_tab.text_table import TextTable
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.card import Card
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.problem import Problem
from mosaic.present.episode_rows import HEADINGS, MOST, NUMBERS, NewestEpisodes
from mosaic.present.scores import count

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient
    from mosaic.client.events import Event
    from mosaic.gui.context import Context
    from mosaic.gui.hub.feed import FeedBatch
    from mosaic.gui.hub.job import Job
    from mosaic.gui.run_tab.source import RunSource

WIDTHS = (72, 72, 72, 84, 92)


class EpisodesCard(Card):
    def __init__(self, context: "Context", source: "RunSource") -> None:
        super().__init__("Newest episodes")
        self._hub = context.hub
        self._source = source
        self._episodes = NewestEpisodes()
        self._job: Job | None = None
        self.total = label("", "caption", name="run.episodes_total")
        self.newest = button("↑ New episodes", self._go_up, "flat", "Scroll to the newest", name="run.newest")
        self.newest.hide()
        self.head.addWidget(self.newest)
        self.head.addWidget(self.total)
        self.table = TextTable(HEADINGS, tuple(NUMBERS), name="run.episodes")
        self.table.setAccessibleName("Newest episodes")
        self.table.verticalScrollBar().valueChanged.connect(self._scrolled)
        for column, width in enumerate(WIDTHS):
            self.table.setColumnWidth(column, width)
        self.none = label("No episode has ended yet.", "muted")
        self.none.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.none)
        self.pages.addWidget(self.table)
        self.problem = Problem()
        self.body.addWidget(self.problem)
        self.body.addWidget(self.pages, 1)

    def read(self) -> None:
        """Read the newest episodes from the store: a feed begins with few events."""
        self.stop()
        if not self.isVisible():
            return  # the feed is for another section; this one reads again when it is entered
        self._job = self._hub.ask(self._newest, self._take, self._fail, owner=self)

    def stop(self) -> None:
        if self._job:
            self._job.cancel()
            self._job = None

    def receive(self, batch: "FeedBatch") -> None:
        if self.isVisible() and self._episodes.receive(batch.events):
            self._show()

    async def _newest(self, client: "AsyncTrainerClient") -> "list[Event]":
        run = await client.get_run(self._source.run_id)
        if not run.summary.events:
            return []
        batches = client.event_batches("episode", run.run_id, until_seq=run.summary.events, tail=MOST)
        return [event async for events in batches for event in events]

    def _take(self, events: "list[Event]") -> None:
        self._job = None
        self.problem.clear()
        self._episodes.receive(events)
        self._show()

    def _fail(self, error: Exception) -> None:
        self._job = None
        self.problem.show_problem("The episodes cannot be read.", str(error))

    def _show(self) -> None:
        run = self._source.run
        rows = self._episodes.rows()
        # The newest rows may arrive before the run's summary.
        self.total.setText(count(max(run.summary.episodes, len(rows)), "episode") if run else "")
        if self.table.verticalScrollBar().value() > 0:
            self.newest.show()
            return
        self.newest.hide()
        self.table.rows.set_rows(rows)
        self.table.setColumnHidden(3, not any(row[3] for row in rows))
        self.table.setColumnHidden(5, len({row[5] for row in rows}) < 2)
        self.pages.setCurrentWidget(self.table if rows else self.none)

    def _go_up(self) -> None:
        self.table.verticalScrollBar().setValue(0)
        self._show()

    def _scrolled(self, place: int) -> None:
        if place == 0 and self.newest.isVisible():
            self._show()
