"""Streams from the daemon for a view that also waits for keys.

Items arrive in the client's thread and are delivered in the thread of the view.
"""

import os
import select
from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from mosaic.model.errors import MosaicError

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient, TrainerClient

T = TypeVar("T")


class Inbox:
    """Collects the items of one client's streams. Receivers are called only by `deliver`, never from another thread.

    Its file descriptor is readable while something waits to be delivered, so `select` can wait for it.
    """

    def __init__(self, client: "TrainerClient") -> None:
        self._client = client
        self._arrived: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._stops: list[Callable[[], None]] = []
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        os.set_blocking(self._write_end, False)

    def __enter__(self) -> "Inbox":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for stop in self._stops:
            stop()
        os.close(self._read_end)
        os.close(self._write_end)

    def fileno(self) -> int:
        return self._read_end

    def subscribe(
        self, source: "Callable[[AsyncTrainerClient], AsyncIterator[T]]", receive: Callable[[T | MosaicError], None]
    ) -> Callable[[], None]:
        """Deliver everything that `source` yields to `receive`. Returns a function that cancels the subscription."""
        is_wanted = [True]

        def arrive(item: T | MosaicError) -> None:
            self._arrived.append((lambda value: receive(value) if is_wanted else None, item))
            self.wake()

        stop = self._client.listen(source, arrive)
        self._stops.append(stop)

        def cancel() -> None:
            is_wanted.clear()
            self._stops.remove(stop)
            stop()

        return cancel

    def wake(self) -> None:
        """Make a waiting `wait` or `select` return."""
        try:
            os.write(self._write_end, b"!")
        except BlockingIOError:
            pass  # the pipe is full, so the file descriptor is readable already

    def wait(self, timeout_s: float) -> bool:
        return bool(select.select([self._read_end], [], [], timeout_s)[0])

    def deliver(self) -> bool:
        """Hand what has arrived to its receivers. Returns whether there was anything."""
        try:
            os.read(self._read_end, 65536)
        except BlockingIOError:
            pass
        has_news = bool(self._arrived)
        while self._arrived:
            receive, item = self._arrived.popleft()
            receive(item)
        return has_news
