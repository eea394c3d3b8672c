"""Watches a trial: which processes are alive after the end of their run, and which run uses which GPU."""

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from lab import Lab, alive

from mosaic.model.durable import read_json
from mosaic.model.rundir import AREAS, RunDir

CHECK_EVERY_S = 0.04
CONTINUE_EVERY = 5  # checks
LEAST_ROOM = 64 << 20  # bytes


@dataclass
class Seen:
    """One run, as seen from outside."""

    rundir: RunDir
    tree: dict[int, str] = field(default_factory=dict)  # pid → start time, because pids are reused
    is_over: bool = False


class Watch:
    """A thread that collects violations, and continues stopped processes after a while."""

    def __init__(self, lab: Lab, stopped_for_s: float, home: Path, violations: list[str]) -> None:
        self.violations = violations
        self._home = home
        self._disk_was_full = False
        self._lab = lab
        self._stopped_for_s = stopped_for_s
        self._runs: dict[str, Seen] = {}
        self._stopped: dict[int, float] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def trees(self) -> dict[str, dict[int, str]]:
        return {run_id: seen.tree for run_id, seen in self._runs.items()}

    def _watch(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - the edge: a stopped watch must not look clean
            self.violations.append(f"the watch could not continue: {error!r}")

    def _run(self) -> None:
        checks = 0
        while not self._done.wait(CHECK_EVERY_S):
            checks += 1
            for rundir in self._rundirs():
                self._check(self._runs.setdefault(rundir.run_id, Seen(rundir)))
            self._check_gpus()
            if checks % CONTINUE_EVERY == 0:
                self._continue_stopped()
                self._check_disk()

    def _rundirs(self) -> list[RunDir]:
        found = []
        for area in AREAS:
            with contextlib.suppress(OSError):
                found += [RunDir(path) for path in self._lab.root.area(area).iterdir()]
        return found

    def _check(self, seen: Seen) -> None:
        if seen.is_over:
            return
        # exit.json first, then the processes: one that is alive after exit.json was read was alive when it was written.
        seen.is_over = read_json(seen.rundir.exit) is not None
        seen.tree |= descendants(seen.rundir)
        if seen.is_over:
            left = still_alive(seen.tree)
            if left:
                self.violations.append(f"{seen.rundir.run_id}: exit.json is there and its processes {left} are alive")

    def _check_gpus(self) -> None:
        owners: dict[str, str] = {}
        for run_id, seen in self._runs.items():
            for gpu in [] if seen.is_over or not still_alive(seen.tree) else gpus_of(seen.rundir):
                other = owners.setdefault(gpu, run_id)
                # Checked again: the two were checked one after the other, and the first may have ended since.
                if other != run_id and still_alive(self._runs[other].tree) and still_alive(seen.tree):
                    self.violations.append(f"{gpu} is used by {other} and by {run_id}")

    def _check_disk(self) -> None:
        """A trial fills a small disk of its own. Records are on the machine's disk, and nothing is judged without."""
        disk = os.statvfs(self._home)
        if not self._disk_was_full and disk.f_bavail * disk.f_frsize < LEAST_ROOM:
            self._disk_was_full = True
            self.violations.append(
                f"the disk of {self._home} itself was full, which no fault of the schedule causes: what else is "
                "reported proves nothing. Free some space and repeat the schedule."
            )

    def _continue_stopped(self) -> None:
        now = time.monotonic()
        stopped = [pid for pid in self._lab.processes() if state_of(pid) == "T"]
        self._stopped = {pid: self._stopped.get(pid, now) for pid in stopped}
        for pid, since in self._stopped.items():
            if now - since >= self._stopped_for_s:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


def gpus_of(rundir: RunDir) -> list[str]:
    """The GPUs that its worker was granted."""
    variables = (read_json(rundir.launch) or {}).get("env", {})
    return [gpu for gpu in variables.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]


def descendants(rundir: RunDir) -> dict[int, str]:
    """The tree of a run, its root first: pid → start time."""
    started = read_json(rundir.started) or {}
    root = started.get("root_pid", 0)
    if not root or start_of(root) != str(started.get("root_start_ticks")):
        return {}
    found, waiting = {}, [root]
    while waiting:
        pid = waiting.pop()
        found[pid] = start_of(pid)
        with contextlib.suppress(OSError):
            waiting += [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return {pid: start for pid, start in found.items() if start}


def still_alive(tree: dict[int, str]) -> list[int]:
    return [pid for pid, start in list(tree.items()) if start_of(pid) == start and alive(pid)]


def start_of(pid: int) -> str:
    return _field(pid, 19)


def state_of(pid: int) -> str:
    return _field(pid, 0)


def _field(pid: int, number: int) -> str:
    """A field of /proc/PID/stat, counted after the name; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[number]
    except OSError:
        return ""
