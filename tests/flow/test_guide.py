"""The workers of docs/howto/new-worker.md, built from its listings, and one written for the public MOSAIC."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from howto import blocks_of
from mosaic_sdk.testing import check_worker

from mosaic.catalog.scaffold import write_worker
from mosaic.model.states import RunState

REPO = Path(__file__).parents[2]
GUIDE = REPO / "docs/howto/new-worker.md"
LIBRARIES = REPO / ".venv-frames"  # has Gymnasium
S = RunState


def write_listings(folder, *names):
    """The files that the guide prints, as it prints them."""
    found = {block.name: block.text for block in blocks_of(GUIDE) if block.is_file}
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found[name])


def make_environment(lab, name, *packages, libraries=None):
    """envs/NAME: a bare virtual environment with these packages copied in."""
    venv = lab.root.envs / name
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    for package in packages:
        shutil.copytree(package, site / package.name)
    if libraries:
        (other,) = libraries.glob("lib/python*/site-packages")
        (site / "libraries.pth").write_text(f"{other}\n")
    return venv


@pytest.mark.skipif(not LIBRARIES.exists(), reason="Gymnasium's environment is missing: make .venv-frames/.ready")
def test_the_guides_training_loop_runs_in_a_new_worker(lab, tmp_path):
    worker = write_worker("acme", tmp_path)
    write_listings(tmp_path, "acme_worker/acme_worker/runtime.py")
    make_environment(lab, "acme", worker / "acme_worker", REPO / "sdk/src/mosaic_sdk", libraries=LIBRARIES)
    config = {"env_id": "CartPole-v1", "total_timesteps": 100, "seed": 7}

    run = lab.submit_worker({"module": "acme_worker.cli", "config": config})
    end = lab.wait_until_over(run)

    assert (end.state, end.reason) == (S.TERMINATED, "")
    assert [step["step_index"] for step in lab.events(run, "step")] == list(range(100))
    episodes = lab.events(run, "episode")
    assert episodes
    assert all(episode["terminated"] for episode in episodes)


def test_the_guides_worker_without_the_sdk_keeps_the_contract(tmp_path):
    write_listings(tmp_path, "plain_worker.py")
    path = os.pathsep.join([str(tmp_path), str(REPO / "sdk/src")])

    card = check_worker(
        "plain_worker", entry_point="plain_worker:get_worker_metadata", env={"PYTHONPATH": path}, grace_s=3.0
    )

    assert card.is_clean, str(card)


def test_what_the_guide_shows_of_a_worker_is_in_the_worker():
    quoted = [
        block.text.partition("\n") for block in blocks_of(GUIDE) if block.text.startswith(("# workers/", "# examples/"))
    ]

    assert len(quoted) == 5
    for first, _, code in quoted:
        assert code in (REPO / first.removeprefix("# ")).read_text(), first


@pytest.fixture
def public_environment(lab):
    """A worker with the public MOSAIC's imports (gym_gui) and without mosaic_sdk's."""
    packages = (REPO / "tests/fixtures/my_worker/my_worker", REPO / "sdk/src/mosaic_sdk")
    return make_environment(lab, "myworker", *packages, REPO / "sdk/gym_gui/src/gym_gui")


def test_a_worker_written_for_the_public_mosaic_runs_with_its_steps_stored(lab, public_environment):
    worker = {"module": "my_worker.cli", "config": {"env_id": "CartPole-v1", "total_steps": 100, "seed": 7}}
    run = lab.submit_worker(worker, name="guide")

    end = lab.wait_until_over(run)

    assert (end.state, end.reason) == (S.TERMINATED, "")
    assert [step["step_index"] for step in lab.events(run, "step")] == list(range(100))
    assert [event["event"] for event in lab.events(run, "lifecycle")] == ["run_started", "heartbeat", "run_completed"]
    assert json.loads(lab.root.worker_file(run.run_id).read_text())["env_id"] == "CartPole-v1"
    argv = json.loads(lab.rundir(run).launch.read_text())["argv"]
    python, config = str(public_environment / "bin/python"), str(lab.root.worker_file(run.run_id))
    assert argv == [python, "-m", "my_worker.cli", "--config", config]


def test_use_grpc_adds_the_daemons_real_address(lab, public_environment):
    run = lab.submit_worker({"module": "my_worker.cli", "use_grpc": True, "config": {"total_steps": 3}})

    assert lab.wait_until_over(run).state is S.TERMINATED
    argv = json.loads(lab.rundir(run).launch.read_text())["argv"]
    addresses = lab.client.health().addresses
    assert argv[-3:-1] == ["--grpc", "--grpc-target"]
    assert argv[-1] in addresses


def test_the_compatibility_package_describes_the_worker(public_environment):
    code = "import my_worker; m, c = my_worker.get_worker_metadata(); print(m.name, c.worker_type, c.requires_gpu)"

    printed = subprocess.run(
        [public_environment / "bin/python", "-c", code], capture_output=True, text=True, check=True
    )

    assert printed.stdout == "My Worker myworker False\n"
