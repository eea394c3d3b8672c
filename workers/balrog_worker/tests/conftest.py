"""Runs of the worker in a folder of their own, and the real llama.cpp server of the LLM worker's tests."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

WORKERS = Path(__file__).parents[2]
SERVER = WORKERS / "llm_worker" / "tests" / "server" / "serve.py"
SERVER_PYTHON = WORKERS.parent / ".venv-llm-server" / "bin" / "python"


class Run:
    """One start of the worker in `folder`; the config's defaults suit tests."""

    def __init__(self, folder, env=None, **config):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        defaults = {"run_id": "R1", "agent": "random", "tasks": "babyai/goto", "episodes": 2, "max_steps": 10}
        (folder / "config.json").write_text(json.dumps({**defaults, **config}))
        self._env = {**os.environ, "MOSAIC_RUN_DIR": str(folder), **(env or {})}

    def start(self, *arguments):
        with open(self.folder / "stdout", "w") as out, open(self.folder / "stderr", "w") as err:
            command = [sys.executable, "-m", "balrog_worker.cli", "--config", "config.json", *arguments]
            return subprocess.Popen(command, cwd=self.folder, env=self._env, stdout=out, stderr=err)

    def finish(self, *arguments):
        """Run it to its end, in this process: the libraries take seconds to import. Returns the exit code."""
        from balrog_worker.cli import main

        sys.stdout.flush(), sys.stderr.flush()
        before, folder = dict(os.environ), os.getcwd()
        kept = [(fd, os.dup(fd)) for fd in (1, 2)]
        try:
            for fd, name in ((1, "stdout"), (2, "stderr")):
                file = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
                os.dup2(file, fd)
                os.close(file)
            os.environ.update(self._env)
            os.chdir(self.folder)
            with open(2, "w", closefd=False) as sys.stderr, open(1, "w", closefd=False) as sys.stdout:
                return main(["--config", "config.json", *arguments])
        finally:
            for fd, copy in kept:
                os.dup2(copy, fd)
                os.close(copy)
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(before)

    @property
    def stderr(self):
        return (self.folder / "stderr").read_text()

    def lines(self, kind):
        lines = [json.loads(line) for line in (self.folder / "stdout").read_text().splitlines() if line[:1] == "{"]
        return [line for line in lines if kind in (line.get("event_type"), line.get("event"))]

    @property
    def journal(self):
        return str(self.folder / "checkpoints" / "journal.jsonl")

    @property
    def results(self):
        return json.loads((self.folder / "results.json").read_text())

    @property
    def ledger(self):
        from mosaic_sdk import ledger

        return list(ledger.read(self.folder / "operators" / "balrog.ledger.jsonl"))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(tasks=…, name="first") → Run"""
    for name in ("OPENAI_API_KEY", "MOSAIC_RUN_ID", "MOSAIC_CHECKPOINT_DIR"):
        monkeypatch.delenv(name, raising=False)

    def make(name="run", env=None, **config):
        return Run(tmp_path / name, env, **config)

    return make


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """Settings of a llama.cpp server with random weights; it ends with this process at the latest."""
    if not SERVER_PYTHON.exists():
        pytest.skip("the test server is not installed. Type: make .venv-llm-server/.ready")
    ready = tmp_path_factory.mktemp("server") / "ready.json"
    child = subprocess.Popen([SERVER_PYTHON, SERVER, "--ready-file", ready, "--with-parent"], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not ready.exists():
        assert child.poll() is None, "the test server ended"
        assert time.monotonic() < deadline, "the test server did not start in 60 s"
        time.sleep(0.02)
    found = json.loads(ready.read_text())
    yield {"base_url": found["base_url"], "model": found["model"]}
    child.kill()
    child.wait()
