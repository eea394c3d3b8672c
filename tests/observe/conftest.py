"""Scripts in an environment that has the libraries and no mosaic_sdk, as MOSAIC starts them, and what they print."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AUTOWRAP = ROOT / "sdk" / "src" / "mosaic_sdk" / "autowrap"
PYTHON = Path(os.environ.get("MOSAIC_OBSERVE_PYTHON") or ROOT / ".venv-observe" / "bin" / "python")
RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@dataclass
class Output:
    text: str
    err: str

    @property
    def lines(self):
        """The telemetry among what was printed."""
        return [json.loads(line) for line in self.text.splitlines() if line.startswith(('{"event', '{"event_type'))]

    @property
    def said(self):
        """What the script itself printed."""
        return [line for line in self.text.splitlines() if not line.startswith('{"event')]

    @property
    def episodes(self):
        return [line for line in self.lines if line.get("event_type") == "episode"]

    @property
    def metrics(self):
        """All values as (name, step, value)."""
        found = []
        for line in self.lines:
            if line.get("event_type") == "metric":
                values = line.get("values") or {line["name"]: line["value"]}
                found += [(name, line["step"], value) for name, value in values.items()]
        return found

    def events(self, name):
        return [line["payload"] for line in self.lines if line.get("event") == name]

    @property
    def observing(self):
        return {(payload["what"], payload["by"]) for payload in self.events("observing")}


@pytest.fixture
def python():
    return str(PYTHON)


@pytest.fixture
def run(tmp_path):
    """run(text) → Output; `observed=False` runs the same script as if there were no MOSAIC."""

    def run(text, *args, observed=True, python=PYTHON, code=0, **variables):
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OMP_NUM_THREADS": "1", "SDL_VIDEODRIVER": "dummy"}
        if observed:
            env |= {"MOSAIC_RUN_ID": RUN_ID, "MOSAIC_RUN_DIR": str(folder), "MOSAIC_OBSERVE": "1"}
            env |= {"PYTHONPATH": str(AUTOWRAP)}
        ended = subprocess.run(
            [python, "-W", "ignore", "-c", text, *args],
            env=env | variables,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ended.returncode == code, ended.stderr[-3000:]
        return Output(ended.stdout, ended.stderr)

    return run
