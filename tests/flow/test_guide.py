"""A worker that follows the seed's guide to the letter, in an environment of its own, runs to TERMINATED."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.model.states import RunState

REPO = Path(__file__).parents[2]
S = RunState


@pytest.fixture
def guide_environment(lab):
    """envs/myworker: a bare virtual environment with the worker, the SDK and the compatibility package copied in."""
    venv = lab.root.envs / "myworker"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    shutil.copytree(REPO / "tests/fixtures/my_worker/my_worker", site / "my_worker")
    shutil.copytree(REPO / "sdk/src/mosaic_sdk", site / "mosaic_sdk")
    shutil.copytree(REPO / "sdk/gym_gui/src/gym_gui", site / "gym_gui")
    return venv


def test_a_worker_written_to_the_guide_runs_with_its_steps_stored(lab, guide_environment):
    worker = {"module": "my_worker.cli", "config": {"env_id": "CartPole-v1", "total_steps": 100, "seed": 7}}
    run = lab.submit_worker(worker, name="guide")

    end = lab.wait_until_over(run)

    assert (end.state, end.reason) == (S.TERMINATED, "")
    assert [step["step_index"] for step in lab.events(run, "step")] == list(range(100))
    assert [event["event"] for event in lab.events(run, "lifecycle")] == ["run_started", "heartbeat", "run_completed"]
    assert json.loads(lab.root.worker_file(run.run_id).read_text())["env_id"] == "CartPole-v1"
    argv = json.loads(lab.rundir(run).launch.read_text())["argv"]
    python, config = str(guide_environment / "bin/python"), str(lab.root.worker_file(run.run_id))
    assert argv == [python, "-m", "my_worker.cli", "--config", config]


def test_use_grpc_adds_the_daemons_real_address(lab, guide_environment):
    run = lab.submit_worker({"module": "my_worker.cli", "use_grpc": True, "config": {"total_steps": 3}})

    assert lab.wait_until_over(run).state is S.TERMINATED
    argv = json.loads(lab.rundir(run).launch.read_text())["argv"]
    addresses = lab.client.health().addresses
    assert argv[-3:-1] == ["--grpc", "--grpc-target"]
    assert argv[-1] in addresses


def test_the_compatibility_package_describes_the_worker(guide_environment):
    code = "import my_worker; m, c = my_worker.get_worker_metadata(); print(m.name, c.worker_type, c.requires_gpu)"

    told = subprocess.run([guide_environment / "bin/python", "-c", code], capture_output=True, text=True, check=True)

    assert told.stdout == "My Worker myworker False\n"
