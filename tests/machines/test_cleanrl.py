"""A whole training of a real library on a real Slurm and on a real Ray."""

from pathlib import Path

import pytest
from far_runs import digests, node_folder

from mosaic.model.states import RunState

ENVIRONMENT = Path(__file__).parents[2] / ".venv-cleanrl"

pytestmark = [
    pytest.mark.timeout(900),  # Ray's start, which may take several tries, and the training
    pytest.mark.skipif(
        not (ENVIRONMENT / ".ready").exists(),
        reason="the worker's environment is missing. Build it with: make .venv-cleanrl/.ready",
    ),
]


def train(lab, on):
    lab.root.envs.mkdir(exist_ok=True)
    environment = lab.root.envs / "cleanrl"
    if not environment.is_symlink():  # of the first try, if the test is repeated
        environment.symlink_to(ENVIRONMENT)
    config = {"algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 1024, "seed": 1}
    run = lab.submit_worker({"module": "cleanrl_worker.cli", "config": config}, on=on)
    return lab.wait_until_over(run, timeout_s=540)


def assert_stored_line_for_line(lab, over):
    assert over.state is RunState.TERMINATED, over.reason
    lines = lab.rundir(over).stdout.read_bytes().splitlines()
    assert len(lines) == over.summary.events + len(lab.text(over).splitlines())
    assert over.summary.episodes > 10
    assert over.summary.rejects == 0
    assert list(lab.rundir(over).checkpoints.iterdir())


def test_a_training_on_slurm_is_stored_line_for_line(slurm_lab):
    assert_stored_line_for_line(slurm_lab, train(slurm_lab, "slurm"))


def test_a_training_on_ray_is_stored_line_for_line_and_its_checkpoints_come_home(ray_lab):
    over = train(ray_lab, "ray:nodeB")

    assert_stored_line_for_line(ray_lab, over)
    assert digests(ray_lab.rundir(over).checkpoints) == digests(node_folder(ray_lab, over).checkpoints)
