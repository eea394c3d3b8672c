import shutil
import tempfile
from pathlib import Path

import pytest
from lab import Lab


@pytest.fixture
def home():
    """A short path: Unix sockets take 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="mosaic-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def lab(home):
    lab = Lab(home)
    yield lab
    lab.close()


@pytest.fixture
def make_lab(home):
    """Labs with daemon options; all share one home and are closed at the end."""
    labs = []

    def make(*options):
        labs.append(Lab(home, options))
        return labs[-1]

    yield make
    for lab in labs:
        lab.close()
