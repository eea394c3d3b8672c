"""The runs as WatchRuns reports them, kept up to date while a view is open."""

import time
from collections.abc import AsyncIterator, Callable, Collection
from typing import TYPE_CHECKING

from mosaic.cli.inbox import Inbox
from mosaic.model.errors import MosaicError, NoDaemon

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient, Run
    from mosaic.client.run import RunList

SILENCE_S = 15.0  # WatchRuns sends something every 5 s: after this long the daemon hangs


class LiveRuns:
    """All runs, or those of `run_ids` or `experiment`. `problem`: of the daemon; `error` ends the view."""

    def __init__(
        self,
        inbox: Inbox,
        run_ids: Collection[str] = (),
        interval_ms: int = 500,
        clock: Callable[[], float] = time.monotonic,
        experiment: str = "",
    ) -> None:
        self.by_id: dict[str, Run] = {}
        self.total = 0
        self.is_known = False  # the first complete answer has arrived
        self.changed: set[str] = set()  # since the last `changes`
        self.problem = ""
        self.error: MosaicError | None = None
        self._clock = clock
        self._received_at = clock()
        self._broken_at: float | None = None
        self._inbox, self._run_ids, self._interval_ms = inbox, run_ids, interval_ms
        self._experiment = experiment

    def follow(self) -> "LiveRuns":
        """Subscribe to the daemon's reports."""
        self._inbox.subscribe(self._watch, self.receive)
        return self

    def _watch(self, inner: "AsyncTrainerClient") -> "AsyncIterator[RunList]":
        return _watch_forever(inner, self._run_ids, self._interval_ms, self._experiment)

    def receive(self, answer: "RunList | MosaicError") -> None:
        if isinstance(answer, MosaicError):
            self.error = answer
            return
        if answer.problem:
            self._broken_at = self._broken_at or self._clock()
            self.problem = answer.problem
            return
        self._received_at, self._broken_at, self.problem = self._clock(), None, ""
        self._update(answer)

    def _update(self, answer: "RunList") -> None:
        here = {run.run_id: run for run in answer.runs}
        gone = set(answer.deleted) | (self.by_id.keys() - here.keys() if answer.is_whole else set())
        for run_id in gone:
            self.by_id.pop(run_id, None)
        self.by_id |= here
        self.changed |= here.keys() | gone
        self.total = answer.total
        self.is_known = self.is_known or answer.is_whole

    def changes(self) -> set[str]:
        """Ids of the runs that are new, changed or deleted since the last call."""
        changed, self.changed = self.changed, set()
        return changed

    @property
    def silent_s(self) -> float:
        """How long the daemon has not answered; 0 while it answers."""
        since = self._broken_at or self._received_at
        silent = self._clock() - since
        return silent if self._broken_at or silent > SILENCE_S else 0.0


async def _watch_forever(
    inner: "AsyncTrainerClient", run_ids: Collection[str], interval_ms: int, experiment: str
) -> "AsyncIterator[RunList]":
    """WatchRuns, however long no daemon is running."""
    while True:
        try:
            async for answer in inner.watch_runs(interval_ms=interval_ms, run_ids=run_ids, experiment=experiment):
                yield answer
        except NoDaemon:
            continue  # it has retried for a minute and reported the problem
