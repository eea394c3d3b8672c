"""Evaluations as real processes: the conductor, its children, commands on stdin and lines on stdout."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LIMIT_S = 120.0
_TIMES = ("timestamp", "ts_unix_ns", "run_id", "path")
_TALK = ("heartbeat", "checkpoint_saved", "command_done", "action_requested")


class Evaluation:
    """One run of the worker."""

    def __init__(self, folder, script, *, mode="script", operators=None, resume_from="", env_more=None, **config):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lines = []
        self._queue = queue.Queue()
        path = self.folder / "worker.json"
        document = {"run_id": self.folder.name, "script": script, "mode": mode, "resume_from": str(resume_from)}
        path.write_text(json.dumps({**document, **config}))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "eval_worker", "--config", str(path)],
            cwd=self.folder,
            env={**self._environment(script, operators or {}), **(env_more or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "stderr.txt").open("wb"),
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.sent = 0

    def _environment(self, script, operators):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("MOSAIC_", "GYM_GUI_"))}
        env.update(MOSAIC_RUN_ID=self.folder.name, MOSAIC_RUN_DIR=str(self.folder))
        entries = {}
        for name, told in operators.items():
            argv = [sys.executable, str(TESTS / "troupe.py"), json.dumps({"mark": str(self.folder / name), **told})]
            entries[name] = {"kind": "worker", "argv": argv, "env": {**env}, "cwd": str(self.folder)}
            entries[name].update(about={"worker": "troupe"}, owns_env=script["operators"][name].get("owns_env", True))
        (self.folder / "operators.json").write_text(json.dumps({"version": 1, "operators": entries}))
        return {**env, "MOSAIC_OPERATORS_FILE": str(self.folder / "operators.json")}

    def _read(self):
        for line in self.process.stdout:
            self._queue.put(json.loads(line))
        self._queue.put(None)

    def next(self, limit_s=LIMIT_S):
        line = self._queue.get(timeout=limit_s)
        if line is not None:
            self.lines.append(line)
        return line

    def until(self, event, **fields):
        """Read on to an event with these fields in its payload; returns the payload."""
        while (line := self.next()) is not None:
            payload = line.get("payload", line)
            name = line.get("event", line.get("event_type"))
            if name == event and all(payload.get(key) == value for key, value in fields.items()):
                return payload
        raise AssertionError(f"no {event} {fields}; stderr: {self.stderr[-2000:]}")

    def command(self, cmd, **fields):
        """Send a command and wait for its answer."""
        self.send(cmd, **fields)
        return self.until("command_done", seq=self.sent)

    def send(self, cmd, **fields):
        self.sent += 1
        self.process.stdin.write(json.dumps({"seq": self.sent, "cmd": cmd, **fields}).encode() + b"\n")
        self.process.stdin.flush()

    def finish(self, limit_s=LIMIT_S):
        """Read to the end; returns the exit code."""
        deadline = time.monotonic() + limit_s
        while self.next(max(0.1, deadline - time.monotonic())) is not None:
            pass
        return self.process.wait(limit_s)

    def kill(self):
        """As the holder kills: the whole tree."""
        for pid in [*self.children(), self.process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        while self.next() is not None:
            pass

    def children(self):
        found = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False)
        return [int(pid) for pid in found.stdout.split()]

    def close(self):
        if self.process.poll() is None:
            self.kill()
        self.process.stdin.close()

    @property
    def stderr(self):
        return (self.folder / "stderr.txt").read_text()

    @property
    def journal(self):
        return self.folder / "checkpoints" / "journal.jsonl"

    @property
    def summary(self):
        return json.loads((self.folder / "eval_summary.json").read_text())

    def events(self, name):
        return [line["payload"] for line in self.lines if line.get("event") == name]

    def episodes(self, lane=None):
        found = [line for line in self.lines if line.get("event_type") == "episode"]
        return [line for line in found if lane in (None, line["lane"])]

    def steps(self, lane=None):
        found = [line for line in self.lines if line.get("event_type") == "step"]
        return [line for line in found if lane in (None, line["env_index"])]

    def results(self):
        """All lines but those about people and commands, without times and ids of the run."""
        return [timeless(line) for line in self.lines if line.get("event") not in _TALK]


def timeless(value):
    if isinstance(value, dict):
        kept = {key: part for key, part in value.items() if key not in _TIMES and not key.endswith(("_ms", "_s"))}
        return {key: timeless(part) for key, part in kept.items()}
    return [timeless(part) for part in value] if isinstance(value, list) else value


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """mosaic-multigrid compiles itself for 20 s of CPU when it is first used: in one test process, not in each."""
    for item in items:
        if "multigrid" in item.nodeid.lower():
            item.add_marker(pytest.mark.xdist_group("multigrid"))


@pytest.fixture
def evaluate(tmp_path):
    """Start an evaluation: evaluate(script, …). All of them are gone after the test."""
    running = []

    def start(script, name=None, **more):
        running.append(Evaluation(tmp_path / (name or f"run-{len(running)}"), script, **more))
        return running[-1]

    yield start
    for evaluation in running:
        evaluation.close()


def players(*names, **more):
    """The operators of a script that are children which own their environment."""
    return {name: {"kind": "worker", "worker": "troupe", **more} for name in names}
