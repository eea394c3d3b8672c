import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_worker import write_tiny_worker

MOSAIC = Path(sys.executable).parent / "mosaic"


@pytest.fixture
def mosaic(home):
    """Runs the command against the test's own state root; gives what it printed."""

    def run(*words, code=0, **environment):
        env = {**os.environ, "MOSAIC_HOME": str(home), **environment}
        told = subprocess.run([MOSAIC, *map(str, words)], capture_output=True, text=True, env=env, cwd=home)
        assert told.returncode == code, told.stdout + told.stderr
        return told.stdout if code == 0 else told.stderr

    return run


@pytest.fixture
def write_worker(tmp_path):
    """Writes a worker's folder and gives its path."""
    return functools.partial(write_tiny_worker, tmp_path)
