"""TelemetryAsyncHub: the asyncio client on a thread of its own.

The two threads share one outbox. The hub's thread puts results into it; a timer of the GUI's thread empties it every
tick, so Qt sees one batch per tick and never one signal per event.

    daemon ──▶ link ──▶ RunsChange, Connection ─┐
           ──▶ feed ──▶ backlog ────────────────┼─▶ outbox ──tick──▶ signals and callbacks of the GUI's thread
           ──▶ job ──▶ result or error ─────────┘
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal

from mosaic.gui.hub.connection import Connection, RunsChange
from mosaic.gui.hub.feed import RunFeed
from mosaic.gui.hub.job import Job
from mosaic.gui.hub.link import Connect, Link
from mosaic.gui.hub.outbox import Outbox
from mosaic.gui.hub.threads import DaemonThreads

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient, Run

T = TypeVar("T")

TICK_MS = 33
STOP_WITHIN_S = 1.0


class TelemetryAsyncHub(QObject):
    """What the window knows of the daemon. Every method and signal belongs to the GUI's thread."""

    runs_changed = Signal(object)  # RunsChange, at most one per tick
    connection_changed = Signal(object)  # Connection, at most one per tick

    def __init__(self, connect: Connect, tick_ms: int = TICK_MS, explain: Callable[[str], str] | None = None) -> None:
        """`explain` may replace the reason why no daemon answers by a better one."""
        super().__init__()
        self.runs: dict[str, Run] = {}
        self.connection = Connection()
        self._outbox = Outbox()
        self._news = _News(self._outbox, self._take_news)
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(DaemonThreads())
        self._link = Link(connect, self._news.add, explain or str)
        self._thread = threading.Thread(target=self._loop.run_forever, name="hub", daemon=True)
        self._is_stopped = False
        self._timer = QTimer(self, interval=tick_ms)
        self._timer.timeout.connect(self._outbox.deliver)

    def start(self) -> None:
        self._thread.start()
        self._timer.start()
        asyncio.run_coroutine_threadsafe(self._link.keep(), self._loop)

    def stop(self) -> None:
        """Close the connection and end the thread, within about a second. Runs and daemon continue."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self._timer.stop()
        self._outbox.clear()
        if self._thread.is_alive():
            # A daemon that hangs must not keep the window open: the thread is a daemon thread and may be left behind.
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(STOP_WITHIN_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_WITHIN_S)
        if not self._thread.is_alive():
            self._loop.close()

    def ask(
        self,
        work: "Callable[[AsyncTrainerClient], Awaitable[T]]",
        then: Callable[[T], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
        owner: QObject | None = None,
    ) -> Job:
        """Call the daemon without waiting. `then` or `failed` is called in a later tick, unless `owner` is gone."""

        async def call() -> T:
            return await work(await self._link.client())

        return self._begin(call(), then, failed, owner)

    def compute(
        self,
        function: Callable[[], T],
        then: Callable[[T], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
        owner: QObject | None = None,
    ) -> Job:
        """Run a blocking function (files, a worker's schema) in another thread."""
        return self._begin(asyncio.to_thread(function), then, failed, owner)

    def follow(
        self, run_id: str, tail: int = 2000, logs: bool = False, events: bool = True, owner: QObject | None = None
    ) -> RunFeed:
        """The events of a run, and its log, one batch per tick, until the feed is closed or `owner` is gone.

        It begins with the newest `tail` events, and skips steps if the window is too slow; with 0 it has all events.
        Without `events` it has only the log.
        """
        feed = RunFeed(run_id, self._outbox, lambda work, failed: self._begin(work, None, failed), self._link.client)
        feed.start(tail, logs, events)
        if owner is not None:
            owner.destroyed.connect(feed.close)
        return feed

    def _begin(
        self,
        work: Coroutine[Any, Any, Any],
        then: Callable[[Any], None] | None,
        failed: Callable[[Exception], None] | None,
        owner: QObject | None = None,
    ) -> Job:
        job = Job(self._outbox, then, failed, owner)
        if self._is_stopped:
            work.close()  # or Python warns that it was never awaited
        else:
            job.bind(asyncio.run_coroutine_threadsafe(job.carry_out(work), self._loop))
        return job

    def _take_news(self, change: RunsChange, connection: Connection | None) -> None:
        if change:
            self.runs_changed.emit(change.applied_to(self.runs))
        if connection and connection != self.connection:
            self.connection = connection
            self.connection_changed.emit(connection)

    async def _close(self) -> None:
        others = [task for task in asyncio.all_tasks(self._loop) if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.wait(others, timeout=STOP_WITHIN_S / 2) if others else None
        await self._link.close()


class _News:
    """Changes of runs and connection, merged until the next tick."""

    def __init__(self, outbox: Outbox, take: Callable[[RunsChange, Connection | None], None]) -> None:
        self._outbox = outbox
        self._take = take
        self._change = RunsChange()
        self._connection: Connection | None = None
        self._is_announced = False
        self._lock = threading.Lock()

    def add(self, news: RunsChange | Connection) -> None:
        with self._lock:
            if isinstance(news, Connection):
                self._connection = news
            else:
                self._change = self._change.followed_by(news)
            if not self._is_announced:
                self._is_announced = True
                self._outbox.put(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            change, self._change = self._change, RunsChange()
            connection, self._connection = self._connection, None
            self._is_announced = False
        self._take(change, connection)
