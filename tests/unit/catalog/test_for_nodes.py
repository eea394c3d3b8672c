"""What is sent to nodes, and the program that installs it there: complete or not at all."""

import json
import os
import signal
import subprocess
import sys
import tomllib

import pytest
from lab import wait_until

from mosaic.catalog.for_nodes import CODE, REQUEST, files_for_nodes
from mosaic.catalog.install import InstallRequest, _without_folder
from mosaic.catalog.installed import Installed
from mosaic.catalog.on_node import MARK
from mosaic.catalog.progress import Progress
from mosaic.catalog.uv import InstallFailed
from mosaic.engines.node_code import platform_files
from mosaic.model.rundir import StateRoot

TOY = "mosaic/bundled/workers/toy_worker"


@pytest.fixture
def root(tmp_path):
    return StateRoot(tmp_path / "home")


def files(root, at="~/.mosaic-node", **request):
    return files_for_nodes(root, InstallRequest(**{"asked": "toy", **request}), at, Progress())


def test_the_lock_file_and_the_wheels_are_sent(root, tmp_path):
    (tmp_path / "more.txt").write_text("gymnasium\n")

    sent = files(root, files=(str(tmp_path / "more.txt"),), packages=("numpy>2",))

    assert {name.rpartition("/")[0] for name in sent if name.endswith(".whl")} == {
        "mosaic/bundled/sdk/wheel",
        "mosaic/bundled/sdk/gym_gui/wheel",
        f"{TOY}/wheel",
    }
    assert f"{TOY}/requirements/default.txt" in sent
    assert "toy" in tomllib.loads(sent[f"{TOY}/pyproject.toml"].decode())["project"]["entry-points"]["mosaic.workers"]
    wanted = json.loads(sent[REQUEST])
    assert wanted["root"] == "~/.mosaic-node"
    assert (wanted["install"]["asked"], wanted["install"]["packages"]) == ("toy", ["numpy>2"])
    assert sent[wanted["install"]["files"][0]] == b"gymnasium\n"


def test_what_suits_this_machine_is_not_asked_of_the_nodes(root):
    folder = root.envs / "toy"
    folder.mkdir(parents=True)
    Installed(
        *("toy", "", "mosaic-toy-worker", "1", "toy", "3.11", "1", True, "f"),
        asked_python="/opt/py",
        asked_torch="cpu",
        asked_packages=["numpy"],
    ).write(folder)

    wanted = json.loads(files(root)[REQUEST])["install"]

    assert (wanted["python"], wanted["torch"], wanted["packages"]) == ("", "", ["numpy"])


def test_a_folder_of_this_machine_is_refused(root, tmp_path):
    with pytest.raises(InstallFailed, match="is on this machine only"):
        files(root, packages=(str(tmp_path),))


def test_a_wheel_is_recognised_wherever_it_lies():
    one, other = (f"toy[x] @ file:///{folder}/toy-1.whl#sha256=ab" for folder in ("tmp/a%20b", "srv"))

    assert _without_folder(one) == _without_folder(other) == "toy[x] @ toy-1.whl#sha256=ab"
    assert _without_folder("acme>=2") == "acme>=2"


# ---- on the node


@pytest.fixture
def package(root, tmp_path):
    """The folder in which Ray starts the job."""
    folder = tmp_path / "package"
    for name, data in (platform_files(CODE) | files(root, at=str(tmp_path / "node"))).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def start(package, bin_folder, code="uv"):
    """The job, with nothing but `bin_folder` in its PATH. -S and the block hide this environment's own uv."""
    block = "import sys; sys.modules['uv'] = None; sys.path.insert(0, '.'); import runpy; "
    words = [sys.executable, "-S", "-c", f"{block}runpy.run_module('mosaic.catalog.on_node', run_name='__main__')"]
    env = {"PATH": str(bin_folder), "HOME": str(package.parent)}
    return subprocess.Popen(words, cwd=package, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def fake_uv(folder, lines):
    folder.mkdir()
    path = folder / "uv"
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{lines}\n")
    path.chmod(0o755)
    return folder


def answer(output):
    return json.loads(output.splitlines()[-1].removeprefix(MARK))


def test_a_node_without_uv_says_how_to_get_it(package, tmp_path):
    job = start(package, tmp_path)

    output, _ = job.communicate(timeout=60)

    assert job.returncode == 1
    assert answer(output)["problem"].endswith(f"Install it with: {sys.executable} -m pip install uv")


def test_what_uv_says_is_told_and_nothing_is_left(package, tmp_path):
    uv = fake_uv(tmp_path / "bin", 'for last; do :; done; mkdir -p "$last"; echo "error: no space left here"; exit 2')

    output, _ = start(package, uv).communicate(timeout=60)

    assert "no space left here" in output.splitlines()[-2]
    assert answer(output)["problem"].startswith("toy was not installed: the disk is full")
    assert [path.name for path in (tmp_path / "node" / "envs").glob("*")] == [".lock"]


def test_a_stopped_install_deletes_what_it_has_begun(package, tmp_path):
    begun = tmp_path / "begun"
    uv = fake_uv(tmp_path / "bin", f'for last; do :; done; mkdir -p "$last/lib"; touch {begun}; exec sleep 600')
    job = start(package, uv)
    wait_until(begun.exists, 60, "uv")
    envs = tmp_path / "node" / "envs"
    assert [path.name[:5] for path in envs.glob(".new-*")] == [".new-"]

    os.kill(job.pid, signal.SIGTERM)
    job.communicate(timeout=60)

    assert job.returncode == 143
    assert list(envs.glob(".new-*")) == []
