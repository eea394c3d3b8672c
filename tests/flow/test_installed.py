"""A MOSAIC that was installed from its wheel, without a checkout, finds its workers in what the wheel brought along."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.catalog.uv import find_uv, uv_environment

REPO = Path(__file__).parents[2]
PARTS = ("src", "sdk", "workers", "pyproject.toml", "setup.py", "README.md", "LICENSE")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not (REPO / "setup.py").exists(), reason="setup.py, which bundles the sources, is not there"),
]


@pytest.fixture
def installed(tmp_path):
    """The bin folder of an environment that has MOSAIC's wheel and no checkout near it."""
    tree, uv = tmp_path / "tree", str(find_uv())
    tree.mkdir()
    for name in PARTS:
        copy = shutil.copytree if (REPO / name).is_dir() else shutil.copy
        copy(REPO / name, tree / name)
    env = uv_environment(os.environ)

    def run(*words):
        subprocess.run([uv, "-q", *map(str, words)], env=env, cwd=tmp_path, check=True)

    run("build", "--wheel", "-o", tmp_path / "dist", tree)
    run("build", "--wheel", "-o", tmp_path / "dist", tree / "sdk")
    run("venv", "--python", sys.executable, tmp_path / "venv")
    run("pip", "install", "--python", tmp_path / "venv/bin/python", *(tmp_path / "dist").glob("*.whl"))
    shutil.rmtree(tree)
    return tmp_path / "venv" / "bin"


def test_an_installed_mosaic_installs_and_runs_a_worker_it_brought_along(installed, home):
    env = {**os.environ, "MOSAIC_HOME": str(home)}

    def mosaic(*words):
        return subprocess.run([installed / "mosaic", *words], env=env, cwd=home, capture_output=True, text=True)

    try:
        made = mosaic("worker", "install", "toy")
        ran = mosaic("run", "toy", "steps=20", "--json")
        written = mosaic("worker", "new", "acme")
    finally:
        mosaic("daemon", "stop", "--kill-runs")

    assert made.returncode == 0, made.stderr
    assert '"state": "TERMINATED"' in ran.stdout, ran.stderr
    assert (written.returncode, (home / "acme_worker" / "pyproject.toml").exists()) == (0, True)
