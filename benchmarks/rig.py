"""Shared by the benchmarks: a MOSAIC in a temporary folder, CPU time of processes, and the table."""

import contextlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from lab import Lab  # from the tests

from mosaic.model.run import RunConfig, Settings, WorkerSpec
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.registry.registry import Registry

MOSAIC = Path(sys.executable).with_name("mosaic")
COPY = "MOSAIC_BENCH_COPY"  # a file that gets a line of JSON for each table, if it is set
TICKS = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def lab(*options: str) -> Iterator[Lab]:
    home = Path(tempfile.mkdtemp(prefix="mosaic-bench-"))
    rig = Lab(home, options)
    try:
        yield rig
    finally:
        rig.close()
        shutil.rmtree(home, ignore_errors=True)


def cpu_s(pid: int) -> float:
    """CPU seconds of a process with its threads; in nanoseconds if the kernel counts them."""
    total = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0]) / 1e9
    return total


def ticked_cpu_s(pid: int) -> float:
    """CPU seconds with a resolution of 10 ms, including finished threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


class LifeCpu:
    """The CPU time of a process over its whole life, read until it exits."""

    def __init__(self, pid: int) -> None:
        self.seconds = 0.0
        self._thread = threading.Thread(target=self._follow, args=(pid,), daemon=True)
        self._thread.start()

    def _follow(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.seconds = ticked_cpu_s(pid)
                time.sleep(0.01)

    def join(self) -> float:
        self._thread.join(60)
        return self.seconds


def fill_registry(path: Path, runs: int, settings_of: Callable[[int], Mapping[str, Any]]) -> list[str]:
    """Runs that are over, with these settings. Returns their ids."""
    registry, run_ids = Registry.open(path), [new_ulid() for _ in range(runs)]
    with patch("os.fsync"):  # twenty thousand of them take minutes, and these runs need not survive a power cut
        for number, run_id in enumerate(run_ids):
            worker, settings = WorkerSpec(module="toy_worker.cli"), Settings(dict(settings_of(number)))
            registry.add(RunConfig(run_id, f"run {number}", "runs", "toy", worker, settings=settings))
            registry.move(run_id, RunState.CANCELLED, "made for the benchmark")
    registry.close()
    return run_ids


def p50(values: Sequence[float]) -> float:
    return statistics.median(values)


def table(title: str, rows: Sequence[Sequence[str]]) -> None:
    if copy := os.environ.get(COPY):
        with open(copy, "a") as file:
            file.write(json.dumps([title, rows]) + "\n")
    print(f"\n{title}")
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    sys.stdout.flush()


def verdict(ok: bool) -> str:
    return "ok" if ok else "MISSED"
