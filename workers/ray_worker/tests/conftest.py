"""Runs of the worker within the test's process: importing RLlib takes ten seconds, and its tests share them."""

import json
from pathlib import Path
from typing import Any

import pytest

SMALL = {"train_batch_size_per_learner": 128, "minibatch_size": 64, "num_epochs": 1}


class Runs:
    """Starts runs in folders of their own, as MOSAIC does."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._folder, self._monkeypatch, self._capfd = folder, monkeypatch, capfd

    def run(self, name: str, **config: Any) -> tuple[int, list[dict[str, Any]], Path]:
        """The exit code, the lines, and the folder of a run."""
        from ray_worker.cli import main

        folder = self._folder / "trainer" / "runs" / name
        folder.mkdir(parents=True)
        self._monkeypatch.chdir(folder)
        self._monkeypatch.setenv("MOSAIC_RUN_DIR", str(folder))
        self._monkeypatch.setenv("MOSAIC_CHECKPOINT_DIR", str(folder / "checkpoints"))
        (folder / "config.json").write_text(json.dumps({"run_id": name, **config}))
        self._capfd.readouterr()
        code = main(["--config", str(folder / "config.json")])
        out = self._capfd.readouterr().out
        return code, [json.loads(line) for line in out.splitlines() if line.startswith("{")], folder


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Runs:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return Runs(tmp_path, monkeypatch, capfd)


def events(lines: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [line["payload"] for line in lines if line.get("event") == name]


def episodes(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if line.get("event_type") == "episode"]
