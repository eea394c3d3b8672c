"""A whole MOSAIC in a temporary folder: the real daemon, holders, tailers and toy workers, and ways to kill them."""

import contextlib
import os
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mosaic.client import TrainerClient
from mosaic.client.run import Run
from mosaic.model.durable import read_json
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.model.states import RunState

# Enough for tests that start many small runs at once on any machine; tests about waiting give less.
ROOMY = ("--cpus", "32", "--memory", "64G")


class Lab:
    def __init__(self, home: Path, options: tuple[str, ...] = ()) -> None:
        self.root = StateRoot(home)
        self.options = (*ROOMY, *options)
        self.client = TrainerClient.connect(self.root, options=self.options)

    # ---- runs

    def submit(
        self,
        name: str = "",
        limits: dict[str, Any] | None = None,
        gpus: dict[str, Any] | None = None,
        resources: dict[str, Any] | None = None,
        on: str = "",
        **config: Any,
    ) -> Run:
        """A run of the toy worker with these config keys."""
        worker = {"module": "toy_worker.cli", "config": config}
        return self.submit_worker(worker, name, limits, gpus, resources, on)

    def submit_worker(
        self,
        worker: dict[str, Any],
        name: str = "",
        limits: dict[str, Any] | None = None,
        gpus: dict[str, Any] | None = None,
        resources: dict[str, Any] | None = None,
        on: str = "",
    ) -> Run:
        metadata = {"worker": worker} | ({"run_name": name} if name else {})
        payload = {"limits": limits or {}, "resources": {"gpus": gpus or {}, **(resources or {})}}
        payload |= {"on": on} if on else {}
        return self.client.submit_run({"metadata": metadata, "payload": payload})

    def rundir(self, run: Run) -> RunDir:
        return RunDir(run.run_dir)

    def state(self, run: Run) -> RunState:
        return self.client.get_run(run.run_id).state

    def wait_for(self, run: Run, *states: RunState, timeout_s: float = 60) -> Run:
        return self.wait_until_run(run, lambda now: now.state in states, f"{states}", timeout_s)

    def wait_until_over(self, run: Run, timeout_s: float = 90) -> Run:
        return self.wait_until_run(run, lambda now: now.state.is_over, "an end", timeout_s)

    def wait_until_run(self, run: Run, condition: Callable[[Run], bool], words: str, timeout_s: float = 60) -> Run:
        deadline = time.monotonic() + timeout_s
        pause_s = 0.02
        while True:
            now = self.client.get_run(run.run_id)
            if condition(now):
                return now
            assert time.monotonic() < deadline, (
                f"run {run.run_id} waits for {words}: {now.state} {now.reason} {self.logs(run)}"
            )
            time.sleep(pause_s)
            # A look costs the daemon milliseconds of CPU, and a long wait has hundreds of them.
            pause_s = min(pause_s * 1.25, 0.05)

    def events(self, run: Run, kind: str = "") -> list[dict[str, Any]]:
        """The stored events, read through the client, in order."""
        found = [event.to_dict() for event in self.client.stream_events(run.run_id)]
        return [event for event in found if not kind or event["type"] == kind]

    def text(self, run: Run, stream: str = "stdout") -> bytes:
        return b"".join(
            piece.text for piece in self.client.stream_logs(run.run_id) if piece.stream == stream and not piece.problem
        )

    def rejects(self, run: Run) -> list[Any]:
        return [piece for piece in self.client.stream_logs(run.run_id) if piece.problem]

    def table(self, run: Run, sql: str) -> list[tuple[Any, ...]]:
        """Rows of the run's file. Of a copy: while the run is live the daemon has an exclusive lock on it."""
        with tempfile.TemporaryDirectory() as folder:
            for path in self.rundir(run).path.glob("telemetry.sqlite*"):
                shutil.copy(path, folder)
            with contextlib.closing(sqlite3.connect(f"{folder}/telemetry.sqlite")) as db:
                return db.execute(sql).fetchall()

    def logs(self, run: Run) -> str:
        """The last lines of the logs of holder, tailer and daemon, for the message of a failing test."""
        rundir = self.rundir(run)
        files = (rundir.holder_log, rundir.tailer_log, rundir.stderr, self.root.daemon_log)
        return "".join(
            f"\n--- {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in files if path.exists()
        )

    # ---- faults

    def daemon_pid(self) -> int:
        return self.client.health().pid

    def kill_daemon(self) -> None:
        pid = self.daemon_pid()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not alive(pid))

    def stop_daemon(self) -> None:
        """Stop the daemon cleanly; return when it has exited."""
        pid = self.daemon_pid()
        self.client.shutdown()
        wait_until(lambda: not alive(pid))

    def restart_daemon(self) -> None:
        self.client.close()
        self.client = TrainerClient.connect(self.root, options=self.options)

    def holder_pid(self, run: Run) -> int:
        started = read_json(self.rundir(run).started)
        assert started
        return int(started["holder_pid"])

    def root_pid(self, run: Run) -> int:
        started = read_json(self.rundir(run).started)
        assert started
        return int(started["root_pid"])

    def tailer_pid(self, run: Run) -> int:
        wait_until(lambda: self._tailers(run) != [])
        return self._tailers(run)[0]

    def _tailers(self, run: Run) -> list[int]:
        return [pid for pid in all_pids() if b"mosaic.tail" in cmdline(pid) and run.run_id.encode() in cmdline(pid)]

    def close(self) -> None:
        """End all processes and leave nothing behind."""
        with contextlib.suppress(Exception):
            self.client.close()
        with contextlib.suppress(Exception), TrainerClient.connect(self.root, options=self.options) as client:
            client.shutdown(kill_runs=True)
        # Repeatedly: a tailer may just have started a daemon.
        while pids := self.processes():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """Every process whose command line or environment names this lab's folder."""
        mark = str(self.root.path).encode()
        return [pid for pid in all_pids() if pid != os.getpid() and (mark in cmdline(pid) or mark in environ(pid))]


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def cmdline(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def environ(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until(done: Callable[[], bool], timeout_s: float = 30, words: str = "") -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, f"timeout after {timeout_s} s while waiting for {words or done}"
        time.sleep(0.01)  # not longer: some tests act at once on what they have waited for
