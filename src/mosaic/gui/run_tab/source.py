"""One run as its tab sees it: the newest state, the details, and its telemetry while somebody looks."""

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from mosaic.model.errors import UnknownRun

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context
    from mosaic.gui.hub.connection import Connection, RunsChange
    from mosaic.gui.hub.feed import FeedBatch, RunFeed
    from mosaic.gui.hub.job import Job

TAIL = 500  # events at the start of a feed; older ones come from the store


class RunSource(QObject):
    """1. Nothing is asked and nothing is followed before `start` and after `stop`.

    2. `followed` is emitted whenever a feed begins: what is shown may have a gap and must be read again.
    """

    changed = Signal()  # `run` is another one
    details_changed = Signal()  # its history, settings or children too
    followed = Signal()
    received = Signal(object)  # FeedBatch
    missed_changed = Signal()
    failed = Signal(str, str)  # a sentence and details: there will be no more telemetry
    deleted = Signal()
    connection_changed = Signal(object)  # Connection

    def __init__(self, context: "Context", run_id: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.run_id = run_id
        self.run: Run | None = context.hub.runs.get(run_id)
        self.is_deleted = False
        self.missed: list[tuple[int, int]] = []  # first and last seq of events that were skipped
        self._hub = context.hub
        self._feed: RunFeed | None = None
        self._asking: Job | None = None
        self._detailed: Run | None = None
        self._is_started = False
        self._hub.runs_changed.connect(self._take_change)
        self._hub.connection_changed.connect(self.connection_changed)

    def start(self) -> None:
        if not self._is_started:
            self._is_started = True
            self.run = self._merged(self._hub.runs.get(self.run_id) or self.run)
            self.changed.emit()
            self._ask_details()

    def stop(self) -> None:
        self._is_started = False
        self.unfollow()
        if self._asking:
            self._asking.cancel()
            self._asking = None

    def follow(self) -> None:
        """Read the telemetry until `unfollow`."""
        if self._feed or self.is_deleted:
            return
        self._feed = self._hub.follow(self.run_id, tail=TAIL, owner=self)
        self._feed.received.connect(self._receive)
        self._feed.failed.connect(self._fail)
        self.followed.emit()

    def unfollow(self) -> None:
        if self._feed:
            self._feed.close()
            self._feed = None
        self._set_missed([])

    def fetch_missed(self) -> None:
        """Fetch what was skipped; it arrives like other events."""
        for first, last in self.missed if self._feed else ():
            self._feed.fetch(first, last) if self._feed else None
        self._set_missed([])

    def _receive(self, batch: "FeedBatch") -> None:
        if batch.renumbered:  # what was skipped or shown has other numbers now: begin again
            self.unfollow()
            self.follow()
            return
        if batch.missed:
            self._set_missed([*self.missed, *batch.missed])
        self.received.emit(batch)

    def _set_missed(self, ranges: list[tuple[int, int]]) -> None:
        if ranges != self.missed:
            self.missed = ranges
            self.missed_changed.emit()

    def _fail(self, why: str) -> None:
        self.failed.emit("The telemetry of this run cannot be read.", why)

    def _take_change(self, change: "RunsChange") -> None:
        if self.is_deleted:
            return
        if self.run_id in change.deleted or (change.is_whole and self.run and self.run_id not in self._hub.runs):
            self._become_deleted()
        elif self._is_started and any(run.run_id == self.run_id for run in change.runs):
            self._take(self._hub.runs[self.run_id])

    def _take(self, run: "Run") -> None:
        self.run = self._merged(run)
        self.changed.emit()
        if self._detailed is None or (run.state, run.attempt) != (self._detailed.state, self._detailed.attempt):
            self._ask_details()

    def _become_deleted(self) -> None:
        self.is_deleted = True
        self.unfollow()
        self.deleted.emit()

    def _merged(self, run: "Run | None") -> "Run | None":
        """Listings have no history, config, settings and children; those of the last answer are still right."""
        known = self._detailed
        if run is None or known is None:
            return run
        return replace(
            run,
            history=known.history,
            config=known.config,
            settings=known.settings,
            children=known.children,
            capabilities=known.capabilities,
        )

    def _ask_details(self) -> None:
        if self._asking is None:
            self._asking = self._hub.ask(
                lambda client: client.get_run(self.run_id), self._take_details, self._no_details, owner=self
            )

    def _take_details(self, run: "Run") -> None:
        self._asking = None
        newest = self._hub.runs.get(self.run_id)
        self._detailed = run
        self.run = self._merged(newest if newest and newest.revision > run.revision else run)
        self.changed.emit()
        self.details_changed.emit()

    def _no_details(self, error: Exception) -> None:
        self._asking = None
        if isinstance(error, UnknownRun):
            self._become_deleted()


def connection_words(connection: "Connection") -> str:
    """What the tab says while the daemon does not answer; empty if it does."""
    if connection.state == "ok":
        return ""
    return "The daemon does not answer. Reconnecting… What you see is as of the last answer."
