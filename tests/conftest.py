import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

# Some tests fork this process while others use gRPC, whose fork handlers can end the child.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

from lab import Lab

# A shell makes background processes ignore Ctrl-C, and everything that the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)  # after xdist
def pytest_collection_modifyitems(items):
    """xdist 3.8 adds the group of a test to `_nodeid`, which pytest 9.2 does not read: no group had an effect."""
    for item in items:
        if grouped := item.__dict__.get("_nodeid"):
            item._id = type(item._id).parse(grouped)


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory):
    """What JAX and Numba compile for a worker is kept for the whole session: each test has a new home."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(shared / "jax"))
    os.environ.setdefault("NUMBA_CACHE_DIR", str(shared / "numba"))


@pytest.fixture
def home():
    """A short path: a Unix socket's path has at most 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="mosaic-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def foreign_folder(tmp_path):
    """A folder that belongs to another user."""
    if os.geteuid() != 0:
        return Path("/usr")
    path = tmp_path / "foreign"
    path.mkdir()
    os.chown(path, 12345, -1)
    return path


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


@pytest.fixture
def script(tmp_path):
    """Writes an executable script; returns its path."""

    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    return write
