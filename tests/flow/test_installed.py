"""MOSAIC installed from its wheels, outside any checkout."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tiny_wheel import write_wheel

from mosaic.catalog.uv import find_uv, uv_environment

REPO = Path(__file__).parents[2]
PARTS = ("src", "sdk", "workers", "pyproject.toml", "setup.py", "MANIFEST.in", "Makefile")
PARTS += ("VERSION", "README.md", "LICENSE", "CHANGELOG.md")
PACKAGES = {"mosaic_rl", "mosaic_sdk", "mosaic_gym_gui", "mosaic_toy_worker"}
WORKERS = ("balrog", "cleanrl", "dreamer", "eval", "llm", "ray", "search", "stable_baselines3", "tianshou", "xuance")
PACKAGES |= {f"mosaic_{name}_worker" for name in WORKERS}

# One group: the wheels are built once, not once in every process of pytest-xdist.
pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("installed")]


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """What `make dist` leaves, built in a copy of the sources that is deleted afterwards."""
    tree, kept = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("kept") / "dist"
    leave_out = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    for name in PARTS:
        if (REPO / name).is_dir():
            shutil.copytree(REPO / name, tree / name, symlinks=True, ignore=leave_out)
        else:
            shutil.copy(REPO / name, tree / name)
    # -o: the tests' own environment builds; the copy needs none.
    command = ["make", "dist", "-o", ".venv/.ready", f"UV={find_uv()}", f"BIN={Path(sys.executable).parent}"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.move(tree / "dist", kept)
    shutil.rmtree(tree)
    return kept


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    """Runs the `mosaic` of a new environment with dist/*.whl in it."""
    venv, home = tmp_path_factory.mktemp("venv"), Path(tmp_path_factory.mktemp("home"))
    uv_run("venv", "--python", sys.executable, "--allow-existing", venv)
    uv_run("pip", "install", "--python", venv / "bin/python", *sorted(dist.glob("*.whl")))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}

    def mosaic(*arguments):
        words = [venv / "bin/mosaic", *map(str, arguments)]
        # A short path: Unix sockets take 107 bytes.
        return subprocess.run(words, env={**env, "MOSAIC_HOME": str(home)}, cwd=home, capture_output=True, text=True)

    mosaic.home, mosaic.venv = home, venv
    yield mosaic
    mosaic("daemon", "stop", "--kill-runs")


def uv_run(*arguments, code=0, **variables):
    command = [str(find_uv()), "-q", *map(str, arguments)]
    done = subprocess.run(command, env=uv_environment({**os.environ, **variables}), capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stderr


def test_make_dist_builds_a_wheel_and_an_sdist_of_every_package(dist):
    files = [path for path in dist.rglob("*") if path.is_file() and path.name != "SHA256SUMS"]
    sums = dict(line.split()[::-1] for line in (dist / "SHA256SUMS").read_text().splitlines())

    assert {path.name.partition("-")[0] for path in files if path.suffix == ".whl"} == PACKAGES
    assert {path.name.partition("-")[0] for path in files if path.suffix == ".gz"} == PACKAGES
    assert sums == {str(path.relative_to(dist)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_wheel_is_built_from_an_unpacked_sdist_alone(dist, tmp_path):
    # `uv build` in `make dist` builds the wheels from the sdists; this is for the symlinked files.
    for sdist in (dist / "sdist").iterdir():
        with tarfile.open(sdist) as archive:
            links = [member.name for member in archive.getmembers() if member.issym()]
        assert links == [], sdist.name


def test_a_run_works_immediately_and_outside_any_checkout(installed):
    ran = installed("run", "toy", "steps=20", "--json")

    assert json.loads(ran.stdout)["state"] == "TERMINATED", ran.stderr
    launch = json.loads(next(installed.home.glob("trainer/control/*/launch.json")).read_text())
    assert launch["argv"][0].startswith(str(installed.venv))


def test_worker_environments_are_made_from_the_bundled_wheels(installed):
    made = installed("worker", "install", "toy")
    ran = installed("run", "toy", "steps=20", "--json")
    listed = installed("worker", "list").stdout

    assert made.returncode == 0, made.stderr
    assert "Building" not in made.stderr
    assert json.loads(ran.stdout)["state"] == "TERMINATED", ran.stderr
    assert all(re.search(rf"^{name} +not installed", listed, re.MULTILINE) for name in WORKERS), listed
    (record,) = installed.home.glob("envs/toy/lib/python3*/site-packages/mosaic_sdk-*.dist-info/direct_url.json")
    wheel, _, checksum = json.loads(record.read_text())["url"].partition("#sha256=")
    path = Path(wheel.removeprefix("file://"))
    assert path.is_relative_to(installed.venv)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == checksum


def test_a_damaged_wheel_is_not_installed(installed):
    (wheel,) = installed.venv.glob("lib/python3*/site-packages/mosaic/bundled/workers/toy_worker/wheel/*.whl")
    whole = wheel.read_bytes()
    wheel.unlink()  # uv links files into environments: the link elsewhere must stay whole
    wheel.write_bytes(whole + b"\0")
    try:
        refused = installed("worker", "install", "toy", "--upgrade")
    finally:
        wheel.write_bytes(whole)

    assert refused.returncode == 1
    assert "toy was not installed: a package does not match its checksum" in refused.stderr


def test_a_new_worker_is_written_from_the_template(installed):
    written = installed("worker", "new", "acme")

    assert written.returncode == 0, written.stderr
    assert (installed.home / "acme_worker" / "pyproject.toml").exists()


def test_no_package_of_the_same_name_takes_the_place_of_our_sdk(dist, tmp_path):
    strange = tmp_path / "strange"
    for version in ("0.1.0", (REPO / "VERSION").read_text().strip(), "99"):
        write_wheel(strange, "mosaic_sdk", version, {"mosaic_sdk/__init__.py": ""})
    uv_run("venv", "--python", sys.executable, tmp_path / "venv")
    (platform,) = dist.glob("mosaic_rl-*.whl")

    output = uv_run(
        *("pip", "install", "--python", tmp_path / "venv/bin/python", "--no-index", platform),
        *("--find-links", strange),
        code=1,
    )

    assert "mosaic-sdk" in output
    assert not list(tmp_path.glob("venv/lib/python3*/site-packages/mosaic_sdk*"))
