"""Where a worker's environment comes from: another Python, the package index by name, a build of torch."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_wheel import write_wheel

from mosaic.catalog.pythons import version_of
from mosaic.catalog.uv import find_uv, uv_environment
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState

S = RunState
TORCH = "2.13.0"


def another_python():
    """The path of another Python that works and that workers support."""
    places = [*sorted(Path.home().glob(".pyenv/versions/3.*/bin/python")), Path("/usr/bin/python3")]
    for place in places:
        version = version_of(place)
        if version and version != version_of(Path(sys.executable)) and int(version.split(".")[1]) >= 9:
            return place, version
    return None, ""


def envs_of(home):
    return sorted(path.name for path in StateRoot(home).envs.glob("[!.]*"))


@pytest.mark.skipif(another_python()[0] is None, reason="no second Python here")
def test_a_worker_runs_on_another_python_than_mosaics_own(mosaic, lab, write_worker):
    python, version = another_python()
    # Built here, by our own Python: the tests' build backend is not written for every other one.
    wheels = wheel_of(write_worker(version="sys.version_info[1]"), lab.root.path / "wheels")

    made = json.loads(mosaic("worker", "install", "tiny-worker", "--python", python, "--json", UV_FIND_LINKS=wheels))
    run = lab.submit_worker({"module": "tiny_worker.cli"})

    assert made["python"] == version
    assert lab.wait_until_over(run).state is S.TERMINATED
    assert lab.events(run, "metric")[0]["value"] == float(version.split(".")[1])


def test_a_worker_is_installed_by_its_name_from_where_the_user_looks_for_packages(mosaic, lab, home, write_worker):
    wheels = wheel_of(write_worker(needs=["iniconfig>=2"]), home / "wheels")

    made = json.loads(mosaic("worker", "install", "tiny-worker==1.0", "--json", UV_FIND_LINKS=wheels))
    again = json.loads(mosaic("worker", "install", "tiny-worker==1.0", "--json", UV_FIND_LINKS=wheels))
    run = lab.submit_worker({"module": "tiny_worker.cli"})

    assert (made["name"], made["version"], made["source"]) == ("tiny", "1.0", "tiny-worker==1.0")
    assert (made["is_new"], again["is_new"]) == (True, False)
    assert lab.wait_until_over(run).state is S.TERMINATED


def test_a_package_of_the_index_without_a_worker_is_not_installed(mosaic, home):
    output = mosaic("worker", "install", "six", code=1)

    assert "six was not installed: six does not provide a worker" in output
    assert envs_of(home) == []
    assert not list(StateRoot(home).envs.glob(".new-*"))


def test_an_unknown_name_is_reported_in_one_sentence(mosaic, home):
    output = mosaic("worker", "install", "no-such-package-of-mosaic", code=1)

    assert "no-such-package-of-mosaic was not installed: no such package" in output.splitlines()[-1]
    assert envs_of(home) == []


def write_torch(folder, version, cuda):
    """Write a wheel named torch that contains only its version; returns its folder."""
    output = f"__version__ = '{version}'\ncuda: Optional[str] = {cuda!r}\n"
    write_wheel(folder, "torch", version, {"torch/__init__.py": "", "torch/version.py": output})
    return str(folder)


def test_the_cpu_build_is_taken_from_a_local_wheel_that_has_no_label(mosaic, home, write_worker):
    # No index has this version.
    links = write_torch(home / "links", "99.1", cuda=None)
    folder = write_worker(needs=["torch==99.1"])

    made = json.loads(mosaic("worker", "install", folder, "--torch", "cpu", "--json", UV_FIND_LINKS=links))

    assert (made["is_new"], made["asked_torch"]) == (True, "cpu")


def test_a_local_cuda_build_is_not_installed_when_the_cpu_build_is_requested(mosaic, home, write_worker):
    write_torch(home / "links", "99.1+cpu", cuda=None)
    links = write_torch(home / "links", "99.2", cuda="13.0")
    folder = write_worker(needs=["torch==99.2"])

    output = mosaic("worker", "install", folder, "--torch", "cpu", code=1, UV_FIND_LINKS=links, UV_HTTP_RETRIES="0")

    assert "Resolving the packages that" in output
    assert "Installing" not in output
    assert envs_of(home) == []


def test_a_build_that_is_installed_already_is_not_installed_again(mosaic, home, write_worker):
    links = write_torch(home / "links", "99.1+cpu", cuda=None)
    folder = write_worker(needs=["torch==99.1"])
    options = {"UV_FIND_LINKS": links, "UV_HTTP_RETRIES": "0"}
    mosaic("worker", "install", folder, **options)

    again = json.loads(mosaic("worker", "install", folder, "--torch", "cpu", "--json", **options))
    other = mosaic("worker", "install", folder, "--torch", "cu128", code=1, **options)

    assert (again["is_new"], again["asked_torch"]) == (False, "cpu")
    assert "was not installed" in other
    assert envs_of(home) == ["tiny"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_cpu_build_of_torch_is_installed_on_request(mosaic, lab, write_worker):
    if not torch_wheels():
        pytest.skip("PIP_FIND_LINKS names no folder with a CPU build of torch")
    folder = write_worker(needs=[f"torch=={TORCH}"], imports="import torch", version="torch.ones(2).sum()")

    mosaic("worker", "install", folder, "--torch", "cpu")
    run = lab.submit_worker({"module": "tiny_worker.cli"})

    assert lab.wait_until_over(run, timeout_s=300).state is S.TERMINATED
    assert lab.events(run, "metric")[0]["value"] == 2.0


def torch_wheels():
    folder = Path(os.environ.get("PIP_FIND_LINKS") or "/nonexistent")
    return list(folder.glob(f"torch-{TORCH}+cpu-cp3{sys.version_info.minor}-*.whl"))


def wheel_of(folder, wheels):
    """A folder with the worker's wheel and the files that the user already has there."""
    wheels.mkdir()
    subprocess.run(
        [find_uv(), "build", "-q", "--wheel", "--python", sys.executable, "-o", wheels, folder],
        env=uv_environment(os.environ),
        check=True,
    )
    shutil.rmtree(folder)
    theirs = os.environ.get("UV_FIND_LINKS") or os.environ.get("PIP_FIND_LINKS") or ""
    return ",".join(filter(None, [str(wheels), theirs]))
