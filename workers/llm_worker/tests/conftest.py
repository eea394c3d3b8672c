"""The real server, the fault server, and an operator that is asked as the conductor asks it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mosaic_sdk.interactive import Session

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # modules that the tests share

from fault_server import MODEL, FaultServer  # noqa: E402

SERVER_PYTHON = HERE.parents[2] / ".venv-llm-server" / "bin" / "python"
ACTIONS = [{"value": 0, "name": "left"}, {"value": 1, "name": "right"}, {"value": 2, "name": "forward"}]
SPACE = {"type": "Discrete", "n": 3, "start": 0}


def start_server(folder: Path, *arguments: str) -> tuple[subprocess.Popen, dict]:
    """llama.cpp with a tiny random model; it ends with this process at the latest."""
    assert SERVER_PYTHON.exists(), "The test server is not installed. Type: make .venv-llm-server/.ready"
    ready = folder / "ready.json"
    command = [SERVER_PYTHON, HERE / "server" / "serve.py", "--ready-file", ready, "--with-parent", *arguments]
    child = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not ready.exists():
        assert child.poll() is None, "the test server ended"
        assert time.monotonic() < deadline, "the test server did not start in 60 s"
        time.sleep(0.02)
    return child, json.loads(ready.read_text())


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    child, ready = start_server(tmp_path_factory.mktemp("server"))
    yield {"base_url": ready["base_url"], "model": ready["model"]}
    child.kill()
    child.wait()


@pytest.fixture
def faults(monkeypatch):
    monkeypatch.setattr("mosaic_sdk.llm.endpoint._FIRST_WAIT_S", 0.01)
    server = FaultServer()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def run_dir(tmp_path, monkeypatch):
    """The folder of a run, as the daemon's environment names it."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("OPENAI_API_KEY", "MOSAIC_REPLAY_LEDGER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MOSAIC_RUN_DIR", str(folder))
    monkeypatch.setenv("MOSAIC_OPERATOR", "gpt")
    return folder


class Asked:
    """An operator in this process, behind the interactive protocol."""

    def __init__(self, **settings):
        from llm_worker.config import LlmConfig
        from llm_worker.runtime import LlmPlayer

        config = LlmConfig(run_id="R1", **settings)
        self.session = Session(lambda: LlmPlayer(config), run_id="R1")

    def send(self, cmd, **fields):
        (answer,) = self.session.answer(json.dumps({"cmd": cmd, **fields}))
        return answer

    def begin(self, seed=3, agent_id="agent_0", **fields):
        about = {"env_id": "MiniGrid-Empty-5x5-v0", "action_space": SPACE, "actions": ACTIONS, **fields}
        return self.send("init_agent", agent_id=agent_id, seed=seed, **about)

    def act(self, text="A wall is ahead.", agent_id="agent_0", **fields):
        return self.send("select_action", agent_id=agent_id, observation=[0], text=text, **fields)


@pytest.fixture
def operator():
    """operator(model=…, base_url=…) → Asked"""
    made = []

    def make(**settings):
        made.append(Asked(**settings))
        return made[-1]

    yield make
    for one in made:
        one.session.close()


@pytest.fixture
def faulty(faults, operator):
    """An operator of the fault server, whose first episode has begun."""

    def make(**settings):
        asked = operator(**{"model": MODEL, "base_url": faults.base_url, "timeout_s": 20, "max_retries": 2, **settings})
        asked.begin()
        return asked

    return make


@pytest.fixture
def rows(run_dir):
    """The rows of the ledger."""
    from mosaic_sdk import ledger

    return lambda: list(ledger.read(run_dir / "operators" / "gpt.ledger.jsonl"))
