"""Environments: what policies see, and ids that do not exist."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from mosaic_sdk.config import ConfigError
from ray_worker.config import RayWorkerConfig
from ray_worker.envs import find_game, is_multi_agent, make_env, seen, seen_space


def config(env_id, **extras):
    return RayWorkerConfig.from_dict({"run_id": "R", "env_id": env_id, "extras": extras})


def test_vectors_of_floats_are_left_as_they_are():
    env = make_env(config("CartPole-v1"))

    assert env.observation_space == gymnasium.make("CartPole-v1").observation_space


def test_other_observations_become_vectors_of_floats():
    env = make_env(config("FrozenLake-v1"))

    observation, _ = env.reset(seed=1)

    assert env.observation_space == spaces.Box(0.0, 1.0, (16,))
    assert (observation.dtype, observation.tolist()) == (np.float32, [1.0] + [0.0] * 15)


def test_a_policy_does_not_see_the_action_mask():
    board = spaces.Box(0, 1, (3, 3, 2), np.int8)
    space = spaces.Dict(observation=board, action_mask=spaces.Box(0, 1, (9,), np.int8))

    observation = seen({"observation": np.ones((3, 3, 2), np.int8), "action_mask": np.zeros(9, np.int8)}, space)

    assert seen_space(space) == spaces.Box(0.0, 1.0, (18,))
    assert (observation.dtype, observation.tolist()) == (np.float32, [1.0] * 18)


def test_the_arguments_of_the_environment_are_passed_on():
    assert make_env(config("FrozenLake-v1", env_kwargs={"map_name": "8x8"})).observation_space.shape == (64,)


@pytest.mark.parametrize("env_id", ["NoSuch-v0", "mpe2/no_such_v3", "pettingzoo/chess_v999"])
def test_an_id_that_does_not_exist_is_refused(env_id):
    with pytest.raises(ConfigError, match=f"env_id: .*{env_id}"):
        find_game(env_id) if is_multi_agent(env_id) else make_env(config(env_id))
