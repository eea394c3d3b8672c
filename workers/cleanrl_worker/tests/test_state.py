"""A script's state is read from its globals and restored into those of another run of the same script."""

import argparse
import sys
import types
from collections import deque

import gymnasium
import numpy as np
import pytest
import torch
from cleanrl_worker import envstate
from cleanrl_worker.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from cleanrl_worker.state import State
from mosaic_sdk.checkpoints import CheckpointError

CHANGED = frozenset({"next_obs", "global_step", "alpha", "loss"})


def make_script(env_id="CartPole-v1", wrap=lambda env: env, width=3, **more):
    """The globals of a script after its set-up and before its training."""
    envs = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.wrappers.RecordEpisodeStatistics(wrap(gymnasium.make(env_id))) for _ in range(2)]
    )
    net = torch.nn.Linear(width, 2)
    log_alpha = torch.zeros(1, requires_grad=True)
    script = {
        "args": argparse.Namespace(gamma=0.99, learning_starts=10),
        "envs": envs,
        "net": net,
        "optimizer": torch.optim.Adam([*net.parameters(), log_alpha]),
        "log_alpha": log_alpha,
        "alpha": 1.0,
        "global_step": 0,
        "next_obs": envs.reset(seed=5)[0],
        "returns": deque(maxlen=20),
        "num_updates": 100,
        **more,
    }
    state = State(script, CHANGED)
    state.note_names()
    return script, state


def play(script, steps):
    """A short training in which everything that can change does change."""
    seen = []
    for _ in range(steps):
        actions = script["envs"].action_space.sample()
        script["next_obs"], rewards, *_ = script["envs"].step(actions)
        loss = (script["net"](torch.randn(1, 3)).sum() * script["log_alpha"].exp()).square()
        script["optimizer"].zero_grad()
        loss.backward()
        script["optimizer"].step()
        script["alpha"] = script["log_alpha"].exp().item()
        script["global_step"] += 1
        script["returns"].append(float(rewards[0]))
        seen.append((script["next_obs"].tolist(), loss.item(), script["alpha"], np.random.rand()))
    return seen


def saved(tmp_path, state, **more):
    keys = {"algo": "x", "env_id": "CartPole-v1", "global_step": 30, "loop": 30, **state.capture(), **more}
    return load_checkpoint(save_checkpoint(tmp_path, keys))


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Acrobot-v1", "Pendulum-v1", "MountainCar-v0"])
def test_a_restored_script_continues_exactly_as_the_first_one(tmp_path, env_id):
    first, state = make_script(env_id)
    first["envs"].action_space.seed(3)
    play(first, 30)

    checkpoint = saved(tmp_path, state)
    expected = play(first, 40)
    second, other = make_script(env_id)
    lost = other.restore(checkpoint)

    assert lost == []
    assert second["global_step"] == 30
    assert play(second, 40) == expected
    assert second["returns"] == first["returns"]


def test_mujocos_physics_continue_exactly_too(tmp_path):
    first, state = make_script("Hopper-v4")
    first["envs"].action_space.seed(3)
    play(first, 30)

    checkpoint = saved(tmp_path, state)
    expected = play(first, 20)
    second, other = make_script("Hopper-v4")

    assert other.restore(checkpoint) == []
    assert play(second, 20) == expected


def test_values_that_the_loop_does_not_change_are_the_new_runs_own(tmp_path):
    _, state = make_script()
    checkpoint = saved(tmp_path, state)

    second, other = make_script()
    second["num_updates"] = 200  # more steps than before
    other.restore(checkpoint)

    assert second["num_updates"] == 200
    assert "num_updates" not in checkpoint.counters
    assert checkpoint.params == {"gamma": 0.99, "learning_starts": 10}


def test_a_network_with_a_second_name_is_saved_once(tmp_path):
    first, state = make_script()
    first["target"] = first["net"]  # as a loop over networks does

    checkpoint = saved(tmp_path, state)

    assert set(checkpoint.modules) == {"net"}
    assert make_script()[1].restore(checkpoint) == []


def test_running_means_of_wrappers_are_saved_per_env(tmp_path):
    first, state = make_script(wrap=gymnasium.wrappers.NormalizeObservation)
    play(first, 30)
    checkpoint = saved(tmp_path, state)

    second, other = make_script(wrap=gymnasium.wrappers.NormalizeObservation)
    other.restore(checkpoint)

    assert len(checkpoint.normalisation["obs_rms"]) == 2
    assert envstate.running_means(second["envs"])["obs_rms"][1]["mean"].tolist() == pytest.approx(
        checkpoint.normalisation["obs_rms"][1]["mean"].tolist(), abs=0
    )


def test_an_env_that_cannot_be_saved_starts_a_new_episode_and_reports_it(tmp_path):
    class Odd(gymnasium.Wrapper):
        def __init__(self, env):
            super().__init__(env)
            self.engine = object()  # this cannot be saved

    first, state = make_script(wrap=Odd)
    play(first, 5)
    checkpoint = saved(tmp_path, state)
    second, other = make_script(wrap=Odd)
    fresh = second["next_obs"].copy()

    lost = other.restore(checkpoint)

    assert lost == ["the environments (Odd.engine is a object): they start new episodes"]
    assert np.array_equal(second["next_obs"], fresh)
    assert torch.equal(second["net"].weight, first["net"].weight)
    assert second["global_step"] == 5


def test_showing_frames_does_not_change_which_checkpoints_fit(tmp_path):
    class FastLaneWrapper(gymnasium.Wrapper):
        pass

    _, state = make_script(wrap=FastLaneWrapper)
    checkpoint = saved(tmp_path, state)

    assert make_script()[1].restore(checkpoint) == []


def test_other_networks_are_refused(tmp_path):
    _, state = make_script()
    checkpoint = saved(tmp_path, state)
    _, other = make_script(another=torch.nn.Linear(1, 1))

    with pytest.raises(CheckpointError, match="it has the modules net, but this run has another, net"):
        other.restore(checkpoint)
    with pytest.raises(CheckpointError, match=r"in net, weight is \(2, 3\) and must be \(2, 4\)"):
        make_script(width=4)[1].restore(checkpoint)


class ReplayBuffer:
    """The part of Stable-Baselines3's buffer that a checkpoint reads."""

    def __init__(self, size=8):
        self.buffer_size, self.pos, self.full = size, 0, False
        self.observations = np.zeros((size, 1, 2), np.float32)
        self.rewards = np.zeros((size, 1), np.float32)

    def add(self, value):
        self.observations[self.pos] = self.rewards[self.pos] = value
        self.pos = (self.pos + 1) % self.buffer_size
        self.full = self.full or self.pos == 0


@pytest.fixture
def buffers(monkeypatch):
    module = types.ModuleType("stable_baselines3.common.buffers")
    module.ReplayBuffer = ReplayBuffer
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("buffers")
@pytest.mark.parametrize("count", [0, 3, 8, 11])
def test_a_replay_buffer_is_restored(tmp_path, count):
    first, state = make_script(rb=ReplayBuffer())
    for value in range(count):
        first["rb"].add(value + 1)
    checkpoint = saved(tmp_path, state)
    second, other = make_script(rb=ReplayBuffer())

    other.restore(checkpoint)

    assert (second["rb"].pos, second["rb"].full) == (first["rb"].pos, first["rb"].full)
    assert np.array_equal(second["rb"].observations, first["rb"].observations)


@pytest.mark.usefixtures("buffers")
def test_a_buffer_that_is_too_large_is_refilled_before_learning_continues(tmp_path):
    first, state = make_script(rb=ReplayBuffer())
    first["rb"].add(1)
    state.buffer_limit_mb = 0
    checkpoint = saved(tmp_path, state)
    second, other = make_script(rb=ReplayBuffer())

    lost = other.restore(checkpoint)

    assert "the replay buffer rb" in lost[0]
    assert "learning continues at step 40" in lost[1]
    assert second["args"].learning_starts == 40


@pytest.mark.usefixtures("buffers")
def test_a_smaller_buffer_than_before_is_refused(tmp_path):
    first, state = make_script(rb=ReplayBuffer(8))
    for value in range(8):
        first["rb"].add(value)
    checkpoint: Checkpoint = saved(tmp_path, state)
    _, other = make_script(rb=ReplayBuffer(4))

    with pytest.raises(CheckpointError, match="Keep buffer_size as it was"):
        other.restore(checkpoint)
