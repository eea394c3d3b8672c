"""Streams of requests: waits for the next message of a client, with a timeout."""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

QUIET_S = 30.0  # a tailer closes its stream much earlier

T = TypeVar("T")


class RequestStreams:
    """The streams that wait for their clients. Used only on the daemon's loop.

    1. A stream whose client sends nothing for `quiet_s` is ended, so that idle clients use no resources.
    2. `close` ends waiting streams at once, and the others after their next reply.
    """

    def __init__(self, quiet_s: float = QUIET_S) -> None:
        self._quiet_s = quiet_s
        self._waiting: set[asyncio.Timeout] = set()
        self._is_closed = False

    async def each(self, messages: AsyncIterator[T]) -> AsyncIterator[T]:
        """The client's messages; each is awaited after the previous one has been processed."""
        while not self._is_closed:
            try:
                message = await self._next(messages)
            except (TimeoutError, StopAsyncIteration):
                return
            yield message

    def close(self) -> None:
        self._is_closed = True
        now = asyncio.get_running_loop().time()
        for limit in self._waiting:
            if not limit.expired():  # otherwise its stream is about to end and cannot be rescheduled
                limit.reschedule(now)

    async def _next(self, messages: AsyncIterator[T]) -> T:
        async with asyncio.timeout(self._quiet_s) as limit:
            self._waiting.add(limit)
            try:
                return await anext(messages)
            finally:
                self._waiting.discard(limit)
