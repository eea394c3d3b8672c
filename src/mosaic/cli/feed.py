"""What the daemon tells by itself, for a view that also waits for keys: it is collected in the client's thread and
taken in the view's."""

import os
import select
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from mosaic.model.errors import MosaicError, NoDaemon

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient, Run, TrainerClient
    from mosaic.client.run import RunList

T = TypeVar("T")
SILENCE_S = 15.0  # WatchRuns says something every 5 s: after so long its daemon hangs


class Feed:
    """Streams of one client. Nothing is called from another thread: `take` hands over what has arrived."""

    def __init__(self, client: "TrainerClient") -> None:
        self._client = client
        self._arrived: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._stops: list[Callable[[], None]] = []
        self._bell, self._ringer = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._ringer, False)

    def __enter__(self) -> "Feed":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for stop in self._stops:
            stop()
        os.close(self._bell)
        os.close(self._ringer)

    def fileno(self) -> int:
        return self._bell

    def listen(
        self, source: "Callable[[AsyncTrainerClient], AsyncIterator[T]]", hear: Callable[[T | MosaicError], None]
    ) -> Callable[[], None]:
        """Have `hear` called by `take` with everything that `source` gives; the answer stops it."""
        is_wanted = [True]

        def arrive(item: T | MosaicError) -> None:
            self._arrived.append((lambda told: hear(told) if is_wanted else None, item))
            self.ring()

        stop = self._client.listen(source, arrive)
        self._stops.append(stop)

        def end() -> None:
            is_wanted.clear()
            self._stops.remove(stop)
            stop()

        return end

    def ring(self) -> None:
        """Wake whoever waits."""
        try:
            os.write(self._ringer, b"!")
        except BlockingIOError:
            pass  # it rings already

    def wait(self, timeout_s: float) -> bool:
        return bool(select.select([self._bell], [], [], timeout_s)[0])

    def take(self) -> bool:
        """Hand over what has arrived; whether there was anything."""
        try:
            os.read(self._bell, 65536)
        except BlockingIOError:
            pass
        is_news = bool(self._arrived)
        while self._arrived:
            hear, item = self._arrived.popleft()
            hear(item)
        return is_news


class Runs:
    """The runs as WatchRuns tells them, kept up to date; what is wrong with the daemon is in `trouble`."""

    def __init__(
        self,
        feed: Feed,
        run_ids: Collection[str] = (),
        interval_ms: int = 500,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.by_id: dict[str, Run] = {}
        self.total = 0
        self.is_known = False  # all of them: the first whole answer is here
        self.changed: set[str] = set()  # since the last `changes`
        self.trouble = ""
        self.error: MosaicError | None = None
        self._clock = clock
        self._heard_at = clock()
        self._broken_at: float | None = None
        self._feed, self._run_ids, self._interval_ms = feed, run_ids, interval_ms

    def follow(self) -> "Runs":
        """Begin to listen."""
        self._feed.listen(lambda inner: _for_ever(inner, self._run_ids, self._interval_ms), self.hear)
        return self

    def hear(self, answer: "RunList | MosaicError") -> None:
        if isinstance(answer, MosaicError):
            self.error = answer
            return
        if answer.trouble:
            self._broken_at = self._broken_at or self._clock()
            self.trouble = answer.trouble
            return
        self._heard_at, self._broken_at, self.trouble = self._clock(), None, ""
        self._take(answer)

    def _take(self, answer: "RunList") -> None:
        here = {run.run_id: run for run in answer.runs}
        gone = set(answer.deleted) | (self.by_id.keys() - here.keys() if answer.is_whole else set())
        for run_id in gone:
            self.by_id.pop(run_id, None)
        self.by_id |= here
        self.changed |= here.keys() | gone
        self.total = answer.total
        self.is_known = self.is_known or answer.is_whole

    def changes(self) -> set[str]:
        """Ids of the runs that are new, different or gone since the last call."""
        changed, self.changed = self.changed, set()
        return changed

    @property
    def silent_s(self) -> float:
        """For how long the daemon has said nothing; 0 while all is well."""
        since = self._broken_at or self._heard_at
        silent = self._clock() - since
        return silent if self._broken_at or silent > SILENCE_S else 0.0


async def _for_ever(
    inner: "AsyncTrainerClient", run_ids: Collection[str], interval_ms: int
) -> "AsyncIterator[RunList]":
    """WatchRuns, however long there is no daemon."""
    while True:
        try:
            async for answer in inner.watch_runs(interval_ms=interval_ms, run_ids=run_ids):
                yield answer
        except NoDaemon:
            continue  # it waited for a minute, and told so
