"""Stable-Baselines3: the same training with and without observation, in one process and in several."""

import json
from pathlib import Path

import pytest

TRAIN = """
import hashlib, sys
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

def main():
    kind = {"here": DummyVecEnv, "elsewhere": SubprocVecEnv}[sys.argv[1]]
    options = {"start_method": "fork"} if kind is SubprocVecEnv else {}
    envs = make_vec_env("CartPole-v1", n_envs=2, seed=1, vec_env_cls=kind, vec_env_kwargs=options)
    judge = gym.make("CartPole-v1")
    judge.reset(seed=9)
    model = PPO("MlpPolicy", envs, n_steps=128, batch_size=64, n_epochs=2, seed=3, device="cpu")
    model.set_logger(configure("log", ["json", "tensorboard"]))
    callbacks = [EvalCallback(judge, eval_freq=128, n_eval_episodes=2, verbose=0), CheckpointCallback(256, "saved")]
    model.learn(300, callback=callbacks)  # it ends after whole rollouts: 2 × 256 steps
    model.save("final")
    weights = b"".join(value.numpy().tobytes() for value in model.policy.state_dict().values())
    print(hashlib.sha256(weights).hexdigest())
    print(sum(len(env.episode_lengths) for env in envs.envs) if hasattr(envs, "envs") else "")
    envs.close()

if __name__ == "__main__":
    main()
"""


def logged(folder: Path):
    """What the logger wrote, but for what depends on the time."""
    rows = [json.loads(line) for line in (folder / "log" / "progress.json").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name[:5] != "time/"} for row in rows]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


@pytest.mark.parametrize("place", ["here", "elsewhere"])
def test_a_training_is_the_same_and_each_value_and_episode_is_one_line(run, folder, place):
    bare = run(TRAIN, place, observed=False)
    log = logged(folder)
    observed = run(TRAIN, place)

    assert observed.said == bare.said
    assert logged(folder) == log
    assert observed.err == bare.err
    training = [line for line in observed.episodes if line.get("agent_id") is None]
    assert place == "elsewhere" or len(training) == int(bare.said[1])
    assert {line["env_index"] for line in training} == {0, 1}
    assert len([line for line in observed.episodes if line.get("agent_id") == "eval"]) == 2 * 2
    assert all(line["total_reward"] == line["steps"] for line in observed.episodes)
    # Its TensorBoard writer gets the same values, and they are not told again.
    assert {by for what, by in observed.observing if what == "metrics"} == {"stable_baselines3.Logger"}
    told = [metric for metric in observed.metrics if metric[0][:5] != "time/"]
    assert len(told) == len(set(told)) > 10
    written = {(name, value) for row in log for name, value in row.items() if name != "train/n_updates"}
    assert {(name, value) for name, _, value in told} == written
    assert observed.events("heartbeat")[-1] == {"progress": 512, "total": 512}
    paths = [payload["path"] for payload in observed.events("checkpoint_saved")]
    assert paths == [str(folder / "saved" / "rl_model_512_steps.zip"), str(folder / "final.zip")]
    by = "gymnasium.make" if place == "here" else "stable_baselines3.SubprocVecEnv"
    assert ("episodes", by) in observed.observing


OWN_ENV = """
import gymnasium as gym
import numpy as np
from stable_baselines3 import DQN

class Walk(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (1,))
    action_space = gym.spaces.Discrete(2)
    def reset(self, seed=None, options=None):
        self.at = 0
        return np.zeros(1, np.float32), {}
    def step(self, action):
        self.at += 1
        return np.zeros(1, np.float32), 2.0, self.at == 5, False, {}

model = DQN("MlpPolicy", Walk(), learning_starts=1000, train_freq=1, device="cpu")
model.learn(20)
model.learn(10, reset_num_timesteps=False)
model.learn(10)
"""


def test_an_env_of_the_scripts_own_is_seen_once_and_several_learns_add_up(run):
    observed = run(OWN_ENV)

    assert [(line["total_reward"], line["steps"]) for line in observed.episodes] == [(10.0, 5)] * 8
    assert [line["global_step"] for line in observed.episodes] == list(range(5, 45, 5))
    assert observed.events("heartbeat")[-1] == {"progress": 40, "total": 40}
    assert ("episodes", "stable_baselines3.Monitor") in observed.observing
