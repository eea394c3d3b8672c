"""Runs of the worker inside the test's process, which imports torch once."""

import json
import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["GYM_GUI_FASTLANE_ONLY"] = "0"


class Run:
    def __init__(self, code, lines, folder, errors):
        self.code, self.lines, self.folder, self.errors = code, lines, folder, errors

    def of(self, kind):
        return [line for line in self.lines if kind in (line.get("event_type"), line.get("event"))]

    @property
    def summary(self):
        return json.loads((self.folder / "eval_summary.json").read_text())


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Runs the worker in a folder of its own: `run(total_timesteps=…, extras={…})`."""
    from tianshou_worker.cli import main

    def start(**keys):
        folder = tmp_path / "trainer" / "runs" / f"run-{len(list(tmp_path.rglob('run-*')))}"
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("MOSAIC_RUN_DIR", str(folder))
        monkeypatch.setenv("MOSAIC_CHECKPOINT_DIR", str(folder / "checkpoints"))
        (folder / "config.json").write_text(json.dumps({"run_id": folder.name, **keys}))
        capfd.readouterr()
        code = main(["--config", "config.json"])
        printed = capfd.readouterr()
        lines = [json.loads(line) for line in printed.out.splitlines() if line.startswith("{")]
        return Run(code, lines, folder, printed.err)

    return start
