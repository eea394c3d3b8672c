import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hold_run import NOBODY, HeldRun, python_for


@pytest.fixture
def hold_run(tmp_path: Path) -> Iterator[HeldRun]:
    """A run folder whose holder runs as the user who runs the tests."""
    run = HeldRun(tmp_path, sys.executable)
    yield run
    run.clean_up()


@pytest.fixture(params=["us", "ordinary user"])
def hold_run_of_any_user(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HeldRun]:
    """The same, and once more as an ordinary user when root runs the tests."""
    if request.param == "us":
        run = HeldRun(tmp_path, sys.executable)
        yield run
        run.clean_up()
        return
    if os.geteuid() != 0:
        pytest.skip("we are an ordinary user already")
    python = python_for(NOBODY)
    if python is None:
        pytest.skip("no Python ≥ 3.11 on this machine that an ordinary user may start")
    # Not tmp_path: only root may enter the folders above it.
    with tempfile.TemporaryDirectory(prefix="mosaic-hold-") as folder:
        os.chmod(folder, 0o755)
        run = HeldRun(Path(folder), python, NOBODY)
        yield run
        run.clean_up()
