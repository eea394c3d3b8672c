"""A whole training of a real library on a real Slurm."""

from pathlib import Path

import pytest

from mosaic.model.states import RunState

ENVIRONMENT = Path(__file__).parents[2] / ".venv-cleanrl"

pytestmark = pytest.mark.skipif(
    not (ENVIRONMENT / ".ready").exists(),
    reason="the worker's environment is missing. Build it with: make .venv-cleanrl/.ready",
)


@pytest.mark.timeout(600)
def test_a_training_on_slurm_is_stored_line_for_line(slurm_lab):
    slurm_lab.root.envs.mkdir(exist_ok=True)
    (slurm_lab.root.envs / "cleanrl").symlink_to(ENVIRONMENT)
    config = {"algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 1024, "seed": 1}

    run = slurm_lab.submit_worker({"module": "cleanrl_worker.cli", "config": config}, on="slurm")
    over = slurm_lab.wait_until_over(run, timeout_s=540)

    assert over.state is RunState.TERMINATED, over.reason
    lines = slurm_lab.rundir(run).stdout.read_bytes().splitlines()
    assert len(lines) == over.summary.events + len(slurm_lab.text(run).splitlines())
    assert over.summary.episodes > 10
    assert over.summary.rejects == 0
    assert list(slurm_lab.rundir(run).checkpoints.iterdir())
