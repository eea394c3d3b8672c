"""The telemetry of one run, as the GUI's thread sees it: one batch per tick."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from mosaic.gui.hub.backlog import Backlog, FeedBatch
from mosaic.gui.hub.outbox import Outbox

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient
    from mosaic.gui.hub.job import Job

__all__ = ["FeedBatch", "RunFeed"]

LOG_TAIL_BYTES = 256 * 1024
FULL_PAUSE_S = 0.05  # how often a reader looks whether the window has made room

GetClient = Callable[[], Awaitable["AsyncTrainerClient"]]
Begin = Callable[[Coroutine[Any, Any, None], Callable[[Exception], None]], "Job"]


class RunFeed(QObject):
    """1. `received` is emitted at most once per tick. 2. After `close` nothing more is emitted.

    3. No event is delivered twice. With `tail`, steps that the window is too slow for are skipped and their range is in
    `missed`; with tail 0 every event is delivered. 4. It continues after a restart of the daemon.
    """

    received = Signal(object)  # FeedBatch
    ended = Signal()  # the run is over and everything was delivered
    failed = Signal(str)  # why there will be no more

    def __init__(self, run_id: str, outbox: Outbox, begin: Begin, get_client: GetClient) -> None:
        super().__init__()
        self.run_id = run_id
        self._outbox = outbox
        self._begin = begin
        self._get_client = get_client
        self._backlog = Backlog(may_drop=False)
        self._fetched = Backlog(may_drop=False)  # apart, so that what was asked for is not dropped again
        self._is_announced = False  # in the outbox already
        self._jobs: list[Job] = []
        self._readers = 0
        self._is_closed = False

    def start(self, tail: int, logs: bool, events: bool) -> None:
        self._backlog = Backlog(may_drop=tail > 0)
        if events:
            self._read(self._read_events(tail) if tail else self._read_every_event())
        if logs:
            self._read(self._read_log())

    def fetch(self, first: int, last: int) -> None:
        """Fetch a missed range; it arrives like any other batch."""
        if not self._is_closed:
            self._jobs.append(self._begin(self._read_range(first, last), self._fail))

    def close(self) -> None:
        self._is_closed = True
        for job in self._jobs:
            job.cancel()
        self._jobs.clear()

    # In the hub's thread

    async def _read_events(self, tail: int) -> None:
        client = await self._get_client()
        async for page in client.event_pages(self.run_id, tail=tail):
            missed = [page.missed] if page.missed else []
            await self._add(FeedBatch(events=page.events, missed=missed, renumbered=page.renumbered))
        self._outbox.put(self._end)

    async def _read_every_event(self) -> None:
        client = await self._get_client()
        async for events in client.event_batches("", self.run_id):
            await self._add(FeedBatch(events=events))
        self._outbox.put(self._end)

    async def _read_log(self) -> None:
        client = await self._get_client()
        async for pieces in client.log_batches(self.run_id, follow=True, tail_bytes=LOG_TAIL_BYTES):
            await self._add(FeedBatch(log=pieces))
        self._outbox.put(self._end)

    async def _read_range(self, first: int, last: int) -> None:
        client = await self._get_client()
        async for events in client.event_batches("", self.run_id, since_seq=first - 1, until_seq=last):
            await self._add(FeedBatch(events=self._backlog.not_taken(events)), self._fetched)

    async def _add(self, batch: FeedBatch, backlog: Backlog | None = None) -> None:
        backlog = backlog or self._backlog
        backlog.add(batch)
        if not self._is_announced:
            self._is_announced = True
            self._outbox.put(self._deliver)
        # Polled, because the window may be busy for seconds: an event would have to be set from its thread.
        while backlog.is_full:
            await asyncio.sleep(FULL_PAUSE_S)

    # In the GUI's thread

    def _read(self, work: Coroutine[Any, Any, None]) -> None:
        self._readers += 1
        self._jobs.append(self._begin(work, self._fail))

    def _deliver(self) -> None:
        self._is_announced = False  # before taking: what arrives from now on is announced again
        batch = self._backlog.take()
        batch.events = self._fetched.take().events + batch.events
        if not self._is_closed and (batch.events or batch.log or batch.missed or batch.renumbered):
            self.received.emit(batch)

    def _end(self) -> None:
        self._readers -= 1
        if not self._readers and not self._is_closed:
            self._deliver()
            self.ended.emit()

    def _fail(self, error: Exception) -> None:
        """Once, even if the log fails for the same reason."""
        if not self._is_closed:
            self._deliver()
            self.close()
            self.failed.emit(str(error))
