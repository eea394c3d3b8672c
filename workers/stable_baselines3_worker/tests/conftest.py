"""Runs of the worker inside the test's process, which imports torch once."""

import json
import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["GYM_GUI_FASTLANE_ONLY"] = "0"


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Runs the worker in a folder of its own: `run(total_timesteps=…, extras={…})`."""
    return Runner(tmp_path, monkeypatch, capfd)


class Runner:
    def __init__(self, folder, monkeypatch, capfd):
        self.trainer, self._patch, self._output = folder / "trainer", monkeypatch, capfd
        self.count = 0

    def __call__(self, *arguments, kind="runs", **keys):
        from stable_baselines3_worker.cli import main

        self.count += 1
        folder = self.trainer / kind / f"run-{self.count}"
        folder.mkdir(parents=True)
        self._patch.chdir(folder)
        self._patch.setenv("MOSAIC_RUN_DIR", str(folder))
        self._patch.setenv("MOSAIC_CHECKPOINT_DIR", str(folder / "checkpoints"))
        (folder / "config.json").write_text(json.dumps({"run_id": f"run-{self.count}", **keys}))
        code = main(["--config", "config.json", *arguments])
        printed = self._output.readouterr()
        lines = [json.loads(line) for line in printed.out.splitlines() if line.startswith("{")]
        return Outcome(code, lines, folder, printed.err)


class Outcome:
    def __init__(self, code, lines, folder, errors):
        self.code, self.lines, self.folder, self.errors = code, lines, folder, errors

    def of(self, kind):
        return [line for line in self.lines if kind in (line.get("event_type"), line.get("event"))]

    @property
    def newest(self):
        return sorted(self.folder.glob("checkpoints/checkpoint-*"))[-1]
