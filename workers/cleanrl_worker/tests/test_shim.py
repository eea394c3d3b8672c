"""gym 0.23's API over Gymnasium, as the older scripts use it. In separate processes, because it is imported as gym."""

import subprocess
import sys
import types

import pytest
from cleanrl_worker.gyms import SHIM_FOLDER, choose_gym
from cleanrl_worker.registry import ALGORITHMS

SCRIPT = """
import gym, numpy as np

def make(seed):
    def thunk():
        env = gym.wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1"))
        env.seed(seed); env.action_space.seed(seed); env.observation_space.seed(seed)
        return env
    return thunk

def play():
    envs = gym.vector.SyncVectorEnv([make(3), make(4)])
    assert isinstance(envs.single_action_space, gym.spaces.Discrete)
    obs = envs.reset()
    assert obs.shape == (2, 4) and obs.dtype == np.float32
    history = [obs.tolist()]
    for step in range(60):
        obs, rewards, dones, infos = envs.step(np.array([step % 2, 0]))
        assert (rewards.dtype, dones.dtype, len(infos)) == (np.float64, np.bool_, 2)
        history.append((obs.tolist(), rewards.tolist(), dones.tolist()))
        for number, info in enumerate(infos):
            if dones[number]:
                assert type(info["episode"]["r"]) is float and type(info["episode"]["l"]) is int, info
                assert info["terminal_observation"].shape == (4,)
                assert info["TimeLimit.truncated"] is False
                assert abs(obs[number]).max() < 0.06, "it is the first observation of the next episode"
                history.append(info["episode"]["r"])
    envs.close()
    return history

assert play() == play(), "the seed is used"
import gymnasium
assert play()[0][0] == gymnasium.make("CartPole-v1").reset(seed=3)[0].tolist(), "the seed is the first reset's"
print("fine", gym.__version__)
"""


def test_the_shim_has_the_api_of_gym_023():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env={"PYTHONPATH": str(SHIM_FOLDER)},
        capture_output=True,
        text=True,
    )

    assert done.stdout.splitlines()[-1:] == ["fine 0.23.1"], done.stderr


STATISTICS = """
import gym, gymnasium

def play(Recorder):
    env = Recorder(gymnasium.make("CartPole-v1"))
    env.reset(seed=5)
    env.action_space.seed(5)
    history = []
    for _ in range(200):
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            history.append({name: (value.dtype, value.shape) for name, value in info["episode"].items()})
            history.append((info["episode"]["r"].tolist(), info["episode"]["l"].tolist()))
            env.reset()
    return history, list(env.return_queue), list(env.length_queue), env.episode_count

ours, theirs = play(gym.wrappers.RecordEpisodeStatistics), play(gymnasium.wrappers.RecordEpisodeStatistics)
assert ours == theirs and ours[-1] > 3, (ours, theirs)
"""


def test_episodes_are_counted_as_gymnasium_counts_them():
    done = subprocess.run(
        [sys.executable, "-c", STATISTICS],
        env={"PYTHONPATH": str(SHIM_FOLDER)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_the_shim_comes_first_on_the_path_and_only_once(monkeypatch):
    monkeypatch.delitem(sys.modules, "gym", raising=False)
    monkeypatch.setattr(sys, "path", ["elsewhere"])

    for _ in range(2):
        choose_gym(ALGORITHMS["ppo_upstream"])

    assert sys.path == [str(SHIM_FOLDER), "elsewhere"]


def test_a_checkout_comes_before_the_shim(monkeypatch):
    monkeypatch.setattr(sys, "path", ["elsewhere"])

    choose_gym(ALGORITHMS["ppo_upstream"], "/checkout")

    assert sys.path == ["/checkout", "elsewhere"]


@pytest.mark.parametrize(
    ("algo", "loaded"),
    [("ppo_upstream", "/site-packages/gym/__init__.py"), ("ppo_procgen", f"{SHIM_FOLDER}/gym/__init__.py")],
)
def test_a_process_that_has_imported_the_other_gym_is_refused(monkeypatch, algo, loaded):
    gym = types.ModuleType("gym")
    gym.__file__ = loaded
    monkeypatch.setitem(sys.modules, "gym", gym)

    with pytest.raises(RuntimeError, match="has already imported another gym"):
        choose_gym(ALGORITHMS[algo])
