"""The tests run in the worker's own environment. In any other one (the platform's) none of them is collected."""

import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# The networks are small: more threads only wait for each other.
os.environ["OMP_NUM_THREADS"] = "1"
collect_ignore_glob = [] if importlib.util.find_spec("xuance") else ["test_*.py"]


class Run:
    """A run of the worker in this process: importing torch again for each would take minutes."""

    def __init__(self, folder: Path, code: int, out: str, err: str) -> None:
        self.folder, self.code, self.err = folder, code, err
        self.lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line["payload"] for line in self.lines if line.get("event") == name]

    def kind(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line.get("event_type") == name]

    @property
    def checkpoint(self) -> str:
        return str(self.events("checkpoint_saved")[-1]["path"])

    @property
    def summary(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "eval_summary.json").read_text()))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a run's folder the worker writes into the working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def launch(tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Run a config as the daemon would, in a run folder of its own."""
    from xuance_worker.cli import main

    def run(config: dict[str, Any], *arguments: str) -> Run:
        folder = tmp_path / f"run-{len(list(tmp_path.glob('run-*')))}"
        folder.mkdir()
        monkeypatch.setenv("MOSAIC_RUN_DIR", str(folder))
        path = folder / "config.json"
        path.write_text(json.dumps({"run_id": "TEST", "seed": 1, **config}))
        capfd.readouterr()
        code = main(["--config", str(path), *arguments])
        return Run(folder, code, *capfd.readouterr())

    return run


_TRAINED: dict[str, Run] = {}


@pytest.fixture
def trained_with(launch: Callable[..., Run]) -> Callable[[str], Run]:
    """A short training of an algorithm, made once for all tests: they must not change its files."""
    from short import short_config

    def find(algo: str) -> Run:
        if algo not in _TRAINED:
            run = launch(short_config(algo))
            assert run.code == 0, run.err
            _TRAINED[algo] = run
        return _TRAINED[algo]

    return find
