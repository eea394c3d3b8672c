"""Tests of one xdist_group share a process, and with it what their fixtures start: a cluster, a set of wheels."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
GROUPED = """\
import os
from pathlib import Path
import pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(6))
def test_grouped(number):
    Path(__file__).with_name(f"{os.getpid()}.ran").touch()
"""


def test_the_tests_of_a_group_run_in_one_process(tmp_path):
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    options = ["-c", TESTS.parent / "pyproject.toml", "-p", "conftest", "-n", "2", "--dist", "loadgroup"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, tmp_path],
        env={**env, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(tmp_path.glob("*.ran"))) == 1
