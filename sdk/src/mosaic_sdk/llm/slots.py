"""A limit on the requests that all processes of one operator have open at once.

Every lane has a process of its own, so the limit is kept by locks on files in the run's folder: slot files
operators/.NAME.slot-0, -1 … . A lock ends with its process, also with one that is killed.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_POLL_S = 0.02


class Slots:
    """A file for each request that may be open. Without a folder there is one process, which asks serially."""

    def __init__(self, folder: str, name: str, count: int) -> None:
        self._paths = [os.path.join(folder, f".{name}.slot-{number}") for number in range(count)] if folder else []

    @asynccontextmanager
    async def one(self, deadline: float) -> AsyncIterator[None]:
        """A slot for the block. TimeoutError if none is free before `deadline`, on the monotonic clock."""
        fd = self._take() if self._paths else None
        while self._paths and fd is None:
            if time.monotonic() > deadline:
                raise TimeoutError
            await asyncio.sleep(_POLL_S)
            fd = self._take()
        try:
            yield
        finally:
            if fd is not None:
                os.close(fd)

    def _take(self) -> int | None:
        for path in self._paths:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                continue
            return fd
        return None
