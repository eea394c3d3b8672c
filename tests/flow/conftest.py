import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from lab import Lab
from tiny_worker import write_tiny_worker

MOSAIC = Path(sys.executable).parent / "mosaic"


@pytest.fixture(scope="module")
def shared_lab():
    """One daemon, with its own state folder, for all tests of a module."""
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home)
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def mosaic(home):
    """Runs the command with the test's own state folder; returns its output."""

    def run(*words, code=0, **environment):
        env = {**os.environ, "MOSAIC_HOME": str(home), **environment}
        done = subprocess.run([MOSAIC, *map(str, words)], capture_output=True, text=True, env=env, cwd=home)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    return run


@pytest.fixture
def write_worker(tmp_path):
    """Writes a worker's folder and returns its path."""
    return functools.partial(write_tiny_worker, tmp_path)
