"""One daemon for all tests of a module."""

import shutil
import tempfile
from pathlib import Path

import pytest
from lab import Lab


@pytest.fixture(scope="module")
def lab():
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home)
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)
