"""How far the script is, and how far it means to go: the progress and the total of its heartbeats."""

import atexit
import os
import sys
import threading
import time
from typing import Any, Callable, List, Optional

from mosaic_sdk.observe.batch import BatchEmitter
from mosaic_sdk.observe.numbers import number_or_none

INTERVAL_S = 10.0
_FLUSH_S = 0.25  # how long an episode's line may wait for the next one
# A script whose own counter is in other units than its total_timesteps passes it; then there is no percentage.
_TOLERANCE = 1.05


class Progress:
    """1. The steps of the library's own counter where it has one (`follow`), else those of the observed envs.
    2. Heartbeats are sent by a thread, from `start` on, and once more at the end; not by child processes, which would
       send a counter of their own.
    """

    def __init__(self, emitter: BatchEmitter, parsed: List[Any]) -> None:
        self.env_steps: Callable[[], int] = lambda: 0
        self.before_follow: Callable[[], None] = lambda: None
        self.is_followed = False  # a library counts its steps itself
        self.is_elsewhere = False  # in a process of which the parent reports the progress
        self._emitter = emitter
        self._parsed = parsed
        self._counter: Optional[Callable[[], int]] = None
        self._total = 0
        self._before = 0  # steps of counters that were followed earlier
        self._pid = 0
        self._told = -1

    def settle(self) -> None:
        """Keep the steps of the counter that was followed so far: it may be about to start again."""
        if self._counter is not None:
            self._before = self.steps()
            self._counter = _nothing_more

    def follow(self, counter: Callable[[], int], total: Any = None) -> None:
        """From now on `counter()` is the progress, after the steps of the counters before it."""
        self.before_follow()
        self.settle()
        self._counter = counter
        self.is_followed = True
        number = number_or_none(total)
        self._total = self._before + int(number) if number and number != float("inf") else 0
        if self._pid == os.getpid():
            self._tell()  # a total is known from now on
        self.start()

    def steps(self) -> int:
        library = self.library_steps()
        return self.env_steps() if library is None else library

    def library_steps(self) -> Optional[int]:
        """None if no library counts them."""
        try:
            return self._before + self._counter() if self._counter is not None else None
        except Exception:  # noqa: BLE001  # a counter is a library's attribute
            return self._before

    def total(self) -> int:
        """0 if it is unknown."""
        total = self._total if self._counter is not None else self._parsed_total()
        return total if self.steps() <= total * _TOLERANCE else 0

    def start(self) -> None:
        """Send heartbeats, unless this process does already."""
        pid = os.getpid()
        if self._pid or self.is_elsewhere or is_child():
            return
        self._pid = pid
        atexit.register(self._tell_last)
        thread = threading.Thread(target=self._beat, name="mosaic-progress", daemon=True)
        try:
            thread.start()
            self._emitter.is_flushed = True
        except RuntimeError:
            pass  # no more threads: the last line tells the progress

    def _beat(self) -> None:
        wait = threading.Event().wait
        next_line = 0.0
        while True:
            if time.monotonic() >= next_line:
                self._tell()
                next_line = time.monotonic() + INTERVAL_S
            wait(_FLUSH_S)
            self._emitter.flush()

    def _tell(self) -> None:
        steps, total = self.steps(), self.total()
        self._told = steps
        self._emitter.heartbeat(steps, **({"total": total} if total else {}))

    def _tell_last(self) -> None:
        if os.getpid() == self._pid and self.steps() != self._told:
            self._tell()

    def _parsed_total(self) -> int:
        """total_timesteps of the latest command line that was parsed."""
        for options in reversed(self._parsed):
            number = number_or_none(getattr(options, "total_timesteps", None))
            if number and 0 < number < float("inf"):
                return int(number)
        return 0


def _nothing_more() -> int:
    return 0


def is_child() -> bool:
    """Whether this is a process that the script started through multiprocessing."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None
