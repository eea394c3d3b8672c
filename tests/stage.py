"""Evaluations by the real eval worker in a lab: its environment, its processes by their part, and what it printed."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from lab import Lab, all_pids, cmdline, environ, wait_until

from mosaic.client.run import Run

REPO = Path(__file__).parents[1]
MOSAIC = Path(sys.executable).with_name("mosaic")
WORLD = "toy_world:ToyWorld-v0"  # tests/fixtures/toy_world: a toy worker can select actions in it
Event = dict[str, Any]


def needs(*environments: str) -> pytest.MarkDecorator:
    """Skip without the environments of these workers, such as `eval`."""
    missing = [f".venv-{name}/.ready" for name in environments if not (REPO / f".venv-{name}/.ready").exists()]
    return pytest.mark.skipif(bool(missing), reason=f"not built: make {' '.join(missing)}")


def toy(**settings: Any) -> dict[str, Any]:
    """An operator: a toy worker in an environment of its own. `timeout_s` and `owns_env` are the operator's keys."""
    own = {key: settings.pop(key) for key in ("timeout_s", "owns_env") if key in settings}
    return {"kind": "worker", "worker": "toy", "settings": settings, **own}


@contextlib.contextmanager
def stage(home: Path, *workers: str, python_path: str = "") -> "Iterator[Stage]":
    """A lab in which these workers are installed. `python_path`: a folder that all processes import from first."""
    (home / "envs").mkdir()
    for worker in workers:
        (home / "envs" / worker).symlink_to(REPO / f".venv-{worker}")
    with pytest.MonkeyPatch.context() as patch:
        folders = (python_path, str(REPO / "tests/fixtures/toy_world"))
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))
        opened = Stage(Lab(home))
        try:
            yield opened
        finally:
            opened.lab.close()


class Stage:
    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def start(self, script: Mapping[str, Any]) -> Run:
        return self.lab.client.get_run(self.lab.client.evaluate(script).run_id)

    def play(self, script: Mapping[str, Any]) -> Run:
        """An evaluation without faults."""
        return self.lab.wait_until_over(self.start(script))

    def resume(self, run: Run) -> Run:
        """As typed: mosaic resume RUN."""
        self.type_in("resume", run.run_id, "--detach")
        return self.lab.wait_until_over(self.lab.client.get_run("last"))

    def type_in(self, *words: str) -> str:
        env = {**os.environ, "MOSAIC_HOME": str(self.lab.root.path), "NO_COLOR": "1"}
        done = subprocess.run([MOSAIC, *words], env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def told(self, run: Run) -> list[Event]:
        """What `mosaic export` prints, without times and ids."""
        return [row for event in self.lab.events(run) if (row := timeless(event, run.run_id))]

    def wait_for_steps(self, run: Run, count: int, lane: str = "a") -> bool:
        """Wait until a lane has taken this many steps; False if the run is over before that."""
        has_ended = self.lab.rundir(run).exit.exists
        wait_until(lambda: self.steps(run, lane) >= count or has_ended(), 90, f"{count} steps of lane {lane}")
        return self.steps(run, lane) >= count and not has_ended()

    def steps(self, run: Run, lane: str) -> int:
        return self.noted(run, "turn", lane)

    def noted(self, run: Run, kind: str, lane: str) -> int:
        """Lines of a kind in the journal, which does not wait for a daemon as telemetry does."""
        with contextlib.suppress(FileNotFoundError):
            lines = (Path(run.run_dir) / "checkpoints/journal.jsonl").read_text().splitlines()
            return sum(line.startswith(f'{{"kind":"{kind}","lane":"{lane}",') for line in lines)
        return 0

    def kill(self, run: Run, part: str, name: str = "") -> int:
        """kill -9 one process of the run: conductor, holder, tailer, or the host or operator `name`. Its pid, or 0."""
        pid = self._pid(run, part, name)
        with contextlib.suppress(ProcessLookupError):
            if pid:
                os.kill(pid, signal.SIGKILL)
                return pid
        return 0

    def kill_daemon(self) -> None:
        self.lab.kill_daemon()
        self.lab.restart_daemon()

    def _pid(self, run: Run, part: str, name: str) -> int:
        if part == "conductor":
            return self.lab.root_pid(run)
        if part == "holder":
            return self.lab.holder_pid(run)
        if part == "tailer":
            return self.lab.tailer_pid(run)
        marks = [f"hosts/{name}.json"] if part == "host" else [f"operators/{name}.json", f"--name\0{name}\0"]
        for pid in all_pids():
            words = cmdline(pid)
            if run.run_id.encode() in environ(pid) and any(mark.encode() in words for mark in marks):
                return pid
        return 0


def timeless(event: Event, run_id: str) -> Event | None:
    """The event without times, ids and numbers of the store; None for a heartbeat, which is all time."""
    if event.get("event") == "heartbeat":
        return None
    plain = {key: value for key, value in event.items() if key not in ("seq", "ts_ns")}
    found: Event = _timeless(plain, run_id)
    return found


def _timeless(value: Any, run_id: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _timeless(one, run_id) for key, one in value.items() if not key.endswith(("_ms", "_s"))}
    if isinstance(value, list):
        return [_timeless(one, run_id) for one in value]
    return value.replace(run_id, "RUN") if isinstance(value, str) else value
