"""The adapters: observations and actions match their spaces."""

import importlib.util

import numpy as np
import pytest
from dreamer_worker.envs import make_env, split_task, stretch
from dreamer_worker.envs.gymnasium import Gymnasium

TASKS = {
    "dummy_grid": "numpy",
    "dummy_image": "numpy",
    "dummy_cont": "numpy",
    "dummy_memory": "numpy",
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


def test_a_time_limit_is_a_truncation_and_not_a_termination():
    env = make_env("dummy_grid", length=3)
    env.reset()
    obs = [env.step({"action": 2}) for _ in range(3)][-1]

    assert obs["is_last"]
    assert not obs["is_terminal"]


def test_a_gymnasium_time_limit_is_a_truncation_too():
    pytest.importorskip("gymnasium")
    env = make_env("Pendulum-v1", max_episode_steps=3)
    env.reset()
    obs = [env.step({"action": np.zeros(1, np.float32)}) for _ in range(3)][-1]
    env.close()

    assert obs["is_last"]
    assert not obs["is_terminal"]


@pytest.mark.parametrize(("given", "torque"), [(1.0, 2.0), (-0.5, -1.0), (0.0, 0.0), (-3.0, -2.0)])
def test_continuous_actions_are_stretched_to_the_env_and_clipped(given, torque):
    pytest.importorskip("gymnasium")
    env = make_env("Pendulum-v1", seed=0)
    env.reset()

    env.step({"action": np.asarray([given], np.float32)})

    assert env._env.unwrapped.last_u == pytest.approx(torque)
    env.close()


def test_every_actuator_has_bounds_of_its_own():
    pytest.importorskip("dm_control")
    env = make_env("dmc_quadruped_walk", seed=0)  # some of them -1 .. 1.1, some -0.8 .. 0.8
    env.reset()
    spec = env._env.action_spec()
    assert (spec.minimum != -spec.maximum).any()

    for given, wanted in ((1, spec.maximum), (-7, spec.minimum), (0, (spec.minimum + spec.maximum) / 2)):
        env.step({"action": np.full(spec.shape, given, np.float32)})
        np.testing.assert_allclose(env._env.physics.control(), wanted)
    env.close()


def test_an_action_without_bounds_is_clipped_and_not_stretched():
    found = stretch([0.5, 0.5, 4.0], np.asarray([-np.inf, 0.0, -np.inf]), np.asarray([np.inf, 4.0, 3.0]))

    assert found.tolist() == [0.5, 3.0, 1.0]


def test_choices_that_do_not_begin_at_zero_are_moved_there_and_back():
    gymnasium = pytest.importorskip("gymnasium")

    class Echo(gymnasium.Env):
        """Shows the choice that was made."""

        observation_space = gymnasium.spaces.Discrete(3, start=5)
        action_space = gymnasium.spaces.Discrete(3, start=5)

        def reset(self, seed=None, options=None):
            return 5, {}

        def step(self, action):
            return action, 0.0, False, False, {}

    env = Gymnasium(Echo())

    assert env.reset()["vector"] == 0
    assert [env.step({"action": choice})["vector"] for choice in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("length", [1, 4])
def test_the_memory_task_shows_its_side_once_and_rewards_remembering_it(length):
    env = make_env("dummy_memory", seed=3, length=length)
    for right in (True, False):
        obs = [env.reset()]
        side = int(obs[0]["side"].argmax())
        while not obs[-1]["is_last"]:
            obs.append(env.step({"action": side if right else 1 - side}))

        assert [one["side"].sum() for one in obs] == [1] + [0] * (length + 1)
        assert [one["asked"].item() for one in obs] == [0] * length + [1, 0]
        assert [one["reward"] for one in obs] == [0] * (length + 1) + [float(right)]
        assert obs[-1]["is_terminal"]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("crafter_reward", ("crafter", "reward")),
        ("dmc_walker_walk", ("dmc", "walker_walk")),
        ("CartPole-v1", ("gym", "CartPole-v1")),
        ("my_env-v0", ("gym", "my_env-v0")),
        ("gym_my_package:Env-v0", ("gym", "my_package:Env-v0")),
        ("my_package:Env-v0", ("gym", "my_package:Env-v0")),
        ("dummy_package:Env-v0", ("gym", "dummy_package:Env-v0")),
    ],
)
def test_tasks_are_named_by_suite(task, expected):
    assert split_task(task) == expected


def test_a_game_that_does_not_exist_is_named():
    pytest.importorskip("ale_py")

    with pytest.raises(ValueError, match="no Atari game 'pongg'"):
        make_env("atari_pongg")
