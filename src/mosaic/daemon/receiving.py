"""Receiving: limits what the callers of the daemon send at the same time.

A message is received whole, so each one that is on its way may take as much memory as a message may have.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from mosaic.daemon.admission import OWNER, UNPROVEN
from mosaic.model.errors import BadConfig, StoreUnavailable

ARRIVES_WITHIN_S = 30.0
MOST_STREAMS = 16  # of one run; its tailer has one, and for a moment a second one
_AT_ONCE = {OWNER: 16, UNPROVEN: 4}
_AT_ONCE_PER_RUN = 4


class Receiving:
    """Used only on the daemon's loop.

    1. Of each caller only a few messages are received at the same time; further calls wait.
    2. A message that does not arrive within `limit_s` ends its call.
    3. A run has at most `MOST_STREAMS` open streams of requests.
    """

    def __init__(self, limit_s: float = ARRIVES_WITHIN_S) -> None:
        self._limit_s = limit_s
        # By caller; a turnstile disappears when it is neither held nor awaited.
        self._turnstiles: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._streams: Counter[str] = Counter()

    async def one(self, caller: str, messages: AsyncIterator[bytes]) -> bytes:
        """The only message of a call."""
        turnstile = self._turnstiles.get(caller)
        if turnstile is None:
            turnstile = self._turnstiles[caller] = asyncio.Semaphore(_AT_ONCE.get(caller, _AT_ONCE_PER_RUN))
        async with turnstile:
            try:
                async with asyncio.timeout(self._limit_s):
                    message = await anext(aiter(messages), None)
            except TimeoutError:
                raise BadConfig("request", f"did not arrive within {self._limit_s:g} s.") from None
        if message is None:
            raise BadConfig("request", "is missing.")
        return message

    @contextmanager
    def stream(self, caller: str) -> Iterator[None]:
        """Counts a stream of requests while it is open."""
        if caller != OWNER and self._streams[caller] >= MOST_STREAMS:
            raise StoreUnavailable(f"Run {caller} has {MOST_STREAMS} open streams of telemetry; close one first.")
        self._streams[caller] += 1
        try:
            yield
        finally:
            self._streams[caller] -= 1
            if not self._streams[caller]:
                del self._streams[caller]
