"""Where the time of a process goes, and which resources it uses."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_PAGE = resource.getpagesize()


class Timers:
    """Sections of a process: how long each took on average and its share of the time, since the last `stats`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since = time.monotonic()
        self._sections: dict[str, list[float]] = {}

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self._note(name, time.perf_counter() - started)

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            with self.section(name):
                return work(*args)

        return run

    def stats(self) -> dict[str, float]:
        with self._lock:
            sections, self._sections = self._sections, {}
            elapsed, self._since = max(1e-9, time.monotonic() - self._since), time.monotonic()
        stats = {}
        for name, (count, total) in sections.items():
            stats[f"timer/{name}/mean_ms"] = 1e3 * total / count
            stats[f"timer/{name}/share"] = total / elapsed
            stats[f"timer/{name}/rate"] = count / elapsed
        return stats

    def _note(self, name: str, seconds: float) -> None:
        with self._lock:
            entry = self._sections.setdefault(name, [0.0, 0.0])
            entry[0] += 1
            entry[1] += seconds


class Rate:
    """Counts per second since the last call of `per_second`."""

    def __init__(self) -> None:
        self._count = 0.0
        self._since = time.monotonic()

    def add(self, count: float = 1.0) -> None:
        self._count += count

    def per_second(self) -> float:
        now = time.monotonic()
        rate = self._count / max(1e-9, now - self._since)
        self._count, self._since = 0.0, now
        return rate


class Clock:
    """Is due once every `every_s` seconds."""

    def __init__(self, every_s: float, due: bool = False) -> None:
        self._every_s = every_s
        self._next = time.monotonic() + (0.0 if due else every_s)

    @property
    def left_s(self) -> float:
        return max(0.0, self._next - time.monotonic())

    def is_due(self) -> bool:
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + self._every_s
        return True


_cpu = {"seconds": time.process_time(), "at": time.monotonic()}


def usage() -> dict[str, float]:
    """CPU cores used since the last call, memory and threads."""
    seconds, now = time.process_time(), time.monotonic()
    cores = (seconds - _cpu["seconds"]) / max(1e-9, now - _cpu["at"])
    _cpu.update(seconds=seconds, at=now)
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * _PAGE
    return {
        "usage/cores": cores,
        "usage/gigabytes": resident / 1e9,
        "usage/threads": len(os.listdir("/proc/self/task")),
    }
