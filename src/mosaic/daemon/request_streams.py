"""Waiting for the next message of a client's stream, but not for ever."""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

QUIET_S = 30.0  # a tailer closes its stream long before

T = TypeVar("T")


class RequestStreams:
    """The streams that wait for their clients. Used from the daemon's loop only.

    1. A stream whose client says nothing for `quiet_s` is ended, so that it holds nothing here.
    2. `close` ends the streams that wait at once, and the others after the reply they owe.
    """

    def __init__(self, quiet_s: float = QUIET_S) -> None:
        self._quiet_s = quiet_s
        self._waiting: set[asyncio.Timeout] = set()
        self._is_closed = False

    async def each(self, messages: AsyncIterator[T]) -> AsyncIterator[T]:
        """The client's messages, each asked for when the one before has been dealt with."""
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
            if not limit.expired():  # else its stream is about to end, and the limit cannot be moved any more
                limit.reschedule(now)

    async def _next(self, messages: AsyncIterator[T]) -> T:
        async with asyncio.timeout(self._quiet_s) as limit:
            self._waiting.add(limit)
            try:
                return await anext(messages)
            finally:
                self._waiting.discard(limit)
