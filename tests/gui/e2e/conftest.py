"""`mosaic gui` as a process of its own, on a screen of its own, with a state folder of its own."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from screen import Screen

from mosaic.client import TrainerClient
from mosaic.model.rundir import StateRoot

REPO = Path(__file__).parents[3]
PICTURES = REPO / "build" / "screenshots"


@pytest.fixture
def screen(tmp_path):
    folder = tmp_path / "screen"
    folder.mkdir()
    screen = Screen(folder, PICTURES)
    yield screen
    screen.close()


@pytest.fixture
def stranger(home, screen, qapp):
    """Opens `mosaic gui`; the daemon, if it was started, is stopped with its runs at the end."""
    windows = []

    def open_it(*options):
        command = [sys.executable, "-m", "mosaic", "gui", "--theme", "light", *options]
        windows.append(screen.start(command, {"MOSAIC_HOME": str(home), "PYTHONFAULTHANDLER": "1"}))
        return windows[-1]

    yield open_it
    for window in windows:
        window.send_signal(signal.SIGINT)
        try:
            window.wait(20)
        except subprocess.TimeoutExpired:
            window.send_signal(signal.SIGABRT)  # faulthandler prints where every thread is
            window.wait()
    with TrainerClient.connect(StateRoot(home)) as client:
        client.shutdown(kill_runs=True)


@pytest.fixture
def client(home, stranger):
    """A client of the same daemon, to judge what the window has done."""

    def connect():
        return TrainerClient.connect(StateRoot(home), start=False)

    return connect


@pytest.fixture
def cleanrl(home):
    """As if `mosaic worker install` had made both environments in this home."""
    (home / "envs").mkdir()
    for name in ("cleanrl", "eval"):
        assert (REPO / f".venv-{name}/.ready").exists(), f"the environment is missing: make .venv-{name}/.ready"
        (home / "envs" / name).symlink_to(REPO / f".venv-{name}")
