"""Heartbeats: lines that report progress, sent by a background thread."""

import os
import threading
from types import TracebackType
from typing import Callable, Optional, Type, Union

from mosaic_sdk import emit


class Heartbeat:
    """Emits a heartbeat when entered and every `interval_s` until left.

        with Heartbeat() as heart:
            for batch in batches:
                learn(batch)
                heart.advance()

    1. Each line carries the progress counter: what `progress()` returns, else what `advance` counted.
    2. `total` is the final value of the counter, if the config does not state it: runs are then shown with a
       percentage. A function is called for each line, and returns 0 as long as the total is unknown.
    3. Nothing is emitted after the `with` block, and nothing by forked children.
    """

    def __init__(
        self,
        interval_s: float = 30.0,
        progress: Optional[Callable[[], int]] = None,
        emitter: Optional[emit.Emitter] = None,
        total: Union[int, Callable[[], int], None] = None,
    ) -> None:
        self.interval_s = interval_s
        self.count = 0
        self._progress = progress
        self._total = total
        self._emitter = emitter or emit.stdout()
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._owner_pid = 0

    def advance(self, n: int = 1) -> None:
        self.count += n

    @property
    def progress(self) -> int:
        return self.count if self._progress is None else self._progress()

    @property
    def total(self) -> Optional[int]:
        return self._total() if callable(self._total) else self._total

    def start(self) -> None:
        self._owner_pid = os.getpid()
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="mosaic-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        # A forked child has neither the thread nor a usable lock in the event.
        if self._thread is None or os.getpid() != self._owner_pid:
            return
        self._stop.set()
        self._thread.join()
        self._thread = None

    def _run(self) -> None:
        # The first one at once: a worker that hangs in its first seconds is then known to send heartbeats.
        while True:
            total = self.total
            self._emitter.heartbeat(self.progress, **({"total": total} if total else {}))
            if self._stop.wait(self.interval_s):
                return

    def __enter__(self) -> "Heartbeat":
        self.start()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.stop()
