"""The adapters: what they promise of their spaces is what they give."""

import importlib.util

import numpy as np
import pytest
from dreamer_worker.envs import make_env, split_task

TASKS = {
    "dummy_grid": "numpy",
    "dummy_image": "numpy",
    "dummy_cont": "numpy",
    "gym_CartPole-v1": "gymnasium",
    "Pendulum-v1": "gymnasium",
    "crafter_reward": "crafter",
    "atari_pong": "ale_py",
    "atari100k_pong": "ale_py",
    "dmc_cartpole_swingup": "dm_control",
    "dmc_ball_in_cup_catch": "dm_control",
    "minigrid_MiniGrid-Empty-5x5-v0": "minigrid",
}


@pytest.mark.parametrize("task", TASKS)
def test_observations_are_what_the_spaces_say(task):
    if importlib.util.find_spec(TASKS[task]) is None:
        pytest.skip(f"{TASKS[task]} is not installed")
    env = make_env(task, seed=1)
    rng = np.random.default_rng(0)

    obs = env.reset()
    assert obs["is_first"]
    for _ in range(25):
        for key, space in env.obs_space.items():
            value = np.asarray(obs[key])
            assert (value.shape, value.dtype.name) == (space.shape, space.dtype), key
        assert np.asarray(obs["reward"]).dtype == np.float32
        assert not (obs["is_terminal"] and not obs["is_last"])
        action = {key: space.sample(rng) for key, space in env.act_space.items()}
        obs = env.reset() if obs["is_last"] else env.step(action)
    env.close()


def test_the_same_seed_plays_the_same_game():
    pytest.importorskip("gymnasium")
    runs = []
    for _ in range(2):
        env = make_env("CartPole-v1", seed=5)
        env.reset()
        runs.append([env.step({"action": number % 2})["vector"] for number in range(8)])
        env.close()

    assert np.array_equal(*runs)


def test_a_time_limit_is_no_death():
    env = make_env("dummy_grid", length=3)
    env.reset()
    obs = [env.step({"action": 2}) for _ in range(3)][-1]

    assert obs["is_last"]
    assert not obs["is_terminal"]


def test_a_gymnasium_time_limit_is_no_death_either():
    pytest.importorskip("gymnasium")
    env = make_env("Pendulum-v1", max_episode_steps=3)
    env.reset()
    obs = [env.step({"action": np.zeros(1, np.float32)}) for _ in range(3)][-1]
    env.close()

    assert obs["is_last"]
    assert not obs["is_terminal"]


def test_continuous_actions_are_stretched_to_the_env():
    pytest.importorskip("gymnasium")
    env = make_env("Pendulum-v1")

    assert env._stretch(np.asarray([1.0]))[0] == 2.0
    assert env._stretch(np.asarray([-3.0]))[0] == -2.0
    env.close()


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("crafter_reward", ("crafter", "reward")),
        ("dmc_walker_walk", ("dmc", "walker_walk")),
        ("CartPole-v1", ("gym", "CartPole-v1")),
        ("my_env-v0", ("gym", "my_env-v0")),
    ],
)
def test_tasks_are_named_by_suite(task, expected):
    assert split_task(task) == expected


def test_a_game_that_does_not_exist_is_named():
    pytest.importorskip("ale_py")

    with pytest.raises(ValueError, match="no Atari game 'pongg'"):
        make_env("atari_pongg")
