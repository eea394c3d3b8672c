"""Each family of environments: a short real training, its checkpoint evaluated."""

import json
import os

import pytest

IMAGES = {"num_envs": 2, "num_steps": 32, "num_minibatches": 2, "update_epochs": 1}
BATCHES = {"num_envs": 2, "num_steps": 128}
FAMILIES = {
    "gymnasium": ("ppo", "Acrobot-v1", 512, BATCHES),
    "box2d": ("ppo", "LunarLander-v2", 512, BATCHES),
    "atari": ("ppo_atari", "BreakoutNoFrameskip-v4", 128, IMAGES),
    "minigrid": ("ppo", "MiniGrid-Empty-5x5-v0", 512, BATCHES),
    "babyai": ("ppo", "BabyAI-GoToRedBallNoDists-v0", 512, BATCHES),
    "babyai, upstream's ppo": ("ppo_upstream", "BabyAI-GoToRedBallNoDists-v0", 512, BATCHES),
    "procgen": ("ppo_procgen", "starpilot", 128, IMAGES),
    "mujoco": ("ppo_continuous_action", "HalfCheetah-v4", 512, {"num_steps": 256}),
    "dm_control": ("ppo_continuous_action", "dm_control/cartpole-balance-v0", 512, {"num_steps": 256}),
    "envpool": ("ppo_atari_envpool", "Pong-v5", 128, IMAGES),
    "recurrent": ("ppo_atari_lstm", "BreakoutNoFrameskip-v4", 128, IMAGES),
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_policy_of_each_family_is_trained_and_evaluated(launch, family):
    algo, env_id, steps, params = FAMILIES[family]
    trained = launch(
        {"algo": algo, "env_id": env_id, "total_timesteps": steps, "seed": 1, "extras": {"algo_params": params}}
    )
    assert trained.code == 0, trained.last_words

    requested = {
        "mode": "policy_eval",
        "policy_path": trained.ground.run,
        "eval_episodes": 2,
        "eval_max_episode_steps": 100,
    }
    evaluated = launch({"seed": 5, "extras": requested})

    assert evaluated.code == 0, evaluated.last_words
    assert [line["event_type"] for line in trained.measurements()].count("metric") > 0
    with open(os.path.join(evaluated.ground.run, "eval_summary.json")) as file:
        summary = json.load(file)
    assert (summary["algo"], summary["env_id"], summary["checkpoint_step"]) == (algo, env_id, steps)
    assert (summary["episodes"], summary["seeds"]) == (2, [5, 6])
