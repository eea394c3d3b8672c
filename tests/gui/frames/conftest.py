"""One daemon and one painting toy run for all tests of a module."""

import shutil
import tempfile
from pathlib import Path

import pytest
from lab import Lab

from mosaic.model.states import RunState


@pytest.fixture(scope="module")
def lab():
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home)
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def painting(lab):
    run = lab.submit("painting", steps=1_000_000, rate=200, paint=True)
    lab.wait_for(run, RunState.EXECUTING)
    return run
