"""One daemon for a module, with small workers of its own, and a sheet."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from lab import Lab
from tiny_worker import write_tiny_worker

from mosaic.gui.new_run.sheet import NewRunSheet

SCHEMA = """
def get_worker_schema():
    return {
        "type": "object", "additionalProperties": False, "required": ["env_id"],
        "properties": {
            "algo": {"type": "string", "enum": ["fast", "slow"], "default": "fast",
                     "x-mosaic-unavailable": {"huge": "it needs more memory"}},
            "env_id": {"type": "string", "examples": ["Corridor-v0", "Maze-v0"]},
            "total_timesteps": {"type": "integer", "minimum": 1, "default": 10},
            "extras": {"type": "object", "additionalProperties": False, "properties": {
                "track_wandb": {"type": "boolean", "default": False},
                "cuda": {"type": "boolean", "default": False},
                "algo_params": {"type": "object", "additionalProperties": False, "properties": {},
                    "x-mosaic-algorithms": {
                        "fast": {"rate": {"type": "number", "exclusiveMinimum": 0, "default": 0.5}},
                        "slow": {"patience": {"type": "integer", "default": 3, "description": "How long to wait."}},
                    }},
            }},
        },
    }
"""
WORKERS = {
    "tiny": SCHEMA,
    "broken": "\ndef get_worker_schema():\n    return {'properties': {'a': 5}}\n",
    "silent": "\nraise RuntimeError('its library is missing')\n",
}


@pytest.fixture(scope="module")
def lab():
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home)
    for name, schema in WORKERS.items():
        add_worker(home, name, schema)
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)


def add_worker(home, name, schema):
    """An environment with one worker. Its package lies in the folder itself: nothing is built or installed."""
    describes = "def get_worker_metadata():\n    return {'name': 'Test'}, {'worker_type': 'test'}\n"
    folder = write_tiny_worker(home / "sources", name, init=describes + schema)
    environment = home / "envs" / name
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python3*/site-packages")
    shutil.copytree(folder / f"{name}_worker", packages / f"{name}_worker")
    about = packages / f"{name}_worker-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-worker\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[mosaic.workers]\n{name} = {name}_worker:get_worker_metadata\n")
    (packages / "platform.pth").write_text(os.pathsep.join(path for path in sys.path if path.endswith("sdk/src")))


@pytest.fixture
def sheet(qtbot, context):
    sheet = NewRunSheet(context)
    qtbot.addWidget(sheet)
    sheet.resize(440, 720)
    qtbot.waitUntil(lambda: context.hub.connection.state == "ok")
    return sheet


@pytest.fixture
def opened(qtbot, sheet):
    """Opens the sheet and waits until the form is there."""

    def open_sheet(*words, **settings):
        sheet.open(*words, **settings)
        qtbot.waitUntil(sheet.page.isVisible, timeout=20_000)
        return sheet

    return open_sheet
