"""Trainings that are impossible or fail: each reports the reason in one sentence."""

import os
import subprocess
import sys

import pytest
import torch
from cleanrl_worker.checkpoints import save_checkpoint
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.fit import check_env
from cleanrl_worker.keeper import check_start, load_start
from cleanrl_worker.registry import find
from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.config import ConfigError

# A checkout of CleanRL with scripts that misbehave but have the usual structure.
SCRIPT = """
import argparse, os, signal, sys
from torch.utils.tensorboard import SummaryWriter

def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env-id", type=str, default="CartPole-v1")
    parser.add_argument("--total-timesteps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()

if __name__ == "__main__":
    args = parse_args()
    writer = SummaryWriter("runs/x")
    for global_step in range(args.total_timesteps):
        if global_step == 30:
            writer.add_scalar("charts/SPS", 1, global_step)
            {ending}
    writer.close()
"""


@pytest.fixture
def misbehave(launch, tmp_path):
    def run(ending):
        (tmp_path / "cleanrl").mkdir()
        (tmp_path / "cleanrl" / "mine.py").write_text(SCRIPT.replace("{ending}", ending))
        return launch({"algo": "mine", "total_timesteps": 100, "extras": {"upstream_path": str(tmp_path)}})

    return run


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ('raise ValueError("the reward is a duck")', "ValueError: the reward is a duck"),
        pytest.param("sys.exit(3)", "the script exited with code 3", marks=pytest.mark.slow),
        pytest.param(
            "os.kill(os.getpid(), signal.SIGSEGV)", "its process was killed by SIGSEGV", marks=pytest.mark.slow
        ),
        (
            'writer.add_scalar("losses/td_loss", float("nan"), 30)',
            "losses/td_loss is nan at step 30: the training has diverged",
        ),
    ],
    ids=["raises", "exits", "segfault", "nan"],
)
def test_the_error_of_a_script_that_fails_is_reported(misbehave, ending, message):
    trial = misbehave(ending)

    assert trial.code == 1
    assert message in trial.events("run_failed")[-1]["payload"]["error"]
    assert message in trial.last_words
    assert not trial.events("run_completed")
    assert trial.leftovers == []


@pytest.mark.parametrize(
    ("algo", "env_id", "message"),
    [
        (
            "dqn",
            "Pendulum-v1",
            "Pendulum-v1 has continuous actions, but dqn needs discrete ones. Use ppo_continuous_action",
        ),
        (
            "sac_continuous_action",
            "CartPole-v1",
            "CartPole-v1 has discrete actions, but sac_continuous_action needs continuous",
        ),
        ("dqn", "BreakoutNoFrameskip-v4", "returns images of shape (210, 160, 3), but dqn needs vectors"),
        (
            "dqn_atari",
            "CartPole-v1",
            "dqn_atari needs an Atari game (such as BreakoutNoFrameskip-v4), but CartPole-v1 is not one. Use dqn.",
        ),
        ("dqn", "CartPol-v1", "there is no environment 'CartPol-v1'. Did you mean CartPole-v"),
    ],
)
def test_an_environment_that_the_algorithm_does_not_support_is_refused_with_the_reason(algo, env_id, message):
    with pytest.raises(ConfigError) as refused:
        check_env(find(algo), env_id)

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("algo", "env_id", "message"),
    [
        ("ppo_procgen", "CartPole-v1", "ppo_procgen needs one of Procgen's environments, but CartPole-v1 is not one"),
        (
            "ppo_atari_envpool",
            "Pong",
            "ppo_atari_envpool needs one of envpool's environments, but Pong is not one. Did you mean Pong",
        ),
    ],
)
def test_an_environment_of_the_old_gym_is_refused_too(algo, env_id, message):
    # In a separate process, because this one may have imported the shim as gym.
    code = f"from cleanrl_worker import fit, registry; fit.check_env(registry.find({algo!r}), {env_id!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert done.returncode == 1
    assert message in done.stderr


def test_a_supported_environment_is_accepted():
    check_env(find("dqn"), "CartPole-v1")
    check_env(find("ppo_upstream"), "BabyAI-GoToObj-v0")
    check_env(find("td3_continuous_action"), "Pendulum-v1")


@pytest.mark.slow
def test_a_training_on_an_unsupported_environment_fails_before_it_starts(launch):
    trial = launch({"algo": "dqn", "env_id": "Pendulum-v1"})

    assert trial.code != 0
    assert "Pendulum-v1 has continuous actions" in trial.events("run_failed")[0]["payload"]["error"]
    assert trial.measurements() == []
    assert os.listdir(os.path.join(trial.ground.run, "tensorboard")) == []


def start(tmp_path, **keys):
    weights = torch.nn.Linear(2, 2).state_dict()
    saved = {"algo": "c51", "env_id": "CartPole-v1", "global_step": 50, "modules": {"q_network": weights}}
    return load_start(str(save_checkpoint(tmp_path, {**saved, **keys})))


def resuming(**keys):
    return CleanRLWorkerConfig.from_dict(
        {"run_id": "01A", "extras": {"mode": "resume_training", "policy_path": "x"}, "total_timesteps": 100, **keys}
    )


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"algo": "dqn"}, "of the algorithm c51, but this run's is dqn. Set algo=c51, or choose another checkpoint"),
        ({"algo": "c51", "env_id": "Acrobot-v1"}, "of the environment CartPole-v1, but this run's is Acrobot-v1"),
        ({"algo": "c51", "total_timesteps": 50}, "is at step 50, but total_timesteps is 50: nothing is left to train"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_an_error(tmp_path, keys, message):
    with pytest.raises(CheckpointError) as refused:
        check_start(start(tmp_path), resuming(**keys))

    assert message in str(refused.value)


def test_a_training_cannot_be_resumed_from_weights_alone(tmp_path):
    torch.save(torch.nn.Linear(2, 2).state_dict(), tmp_path / "dqn.cleanrl_model")

    with pytest.raises(CheckpointError, match="holds only a network's weights"):
        load_start(str(tmp_path / "dqn.cleanrl_model"))
