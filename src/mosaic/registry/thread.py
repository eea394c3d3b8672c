"""The thread that owns `registry.db`. No other thread uses it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from mosaic.registry.registry import Registry

T = TypeVar("T")


class RegistryThread:
    """Runs calls on the registry in order, off the event loop: an fsync on a slow disk must not block the streams."""

    def __init__(self, path: Path) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="registry")
        self._registry = self._thread.submit(Registry.open, path).result()

    async def do(self, work: Callable[[Registry], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._registry)

    def close(self) -> None:
        self._thread.submit(self._registry.close).result()
        self._thread.shutdown()
