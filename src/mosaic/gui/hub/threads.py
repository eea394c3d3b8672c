"""Threads for blocking work that never delay the end of the process."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

MOST_THREADS = 8

_Work = tuple["Future[Any]", Callable[[], Any]]


class DaemonThreads(ThreadPoolExecutor):
    """An executor whose threads are daemons.

    Python waits at its end for the threads of a ThreadPoolExecutor: a window that waits for a worker that hangs would
    stay in the process list after it was closed. asyncio accepts only its subclasses as default executor.
    """

    def __init__(self, most: int = MOST_THREADS) -> None:
        super().__init__(max_workers=1)  # it starts its thread at the first submit, which this class replaces
        self._most = most
        self._waiting: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        self._waiting.put((future, lambda: function(*args, **kwargs)))
        if not self._idle.acquire(blocking=False) and self._started < self._most:
            self._started += 1
            threading.Thread(target=self._work, name=f"hub-{self._started}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the idle threads; a busy one ends after its work. It never waits."""
        for _ in range(self._started):
            self._waiting.put(None)

    def _work(self) -> None:
        while (item := self._waiting.get()) is not None:
            _carry_out(*item)
            self._idle.release()


def _carry_out(future: "Future[Any]", call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001 - as every executor: the caller gets it
        future.set_exception(error)
