"""MOSAIC's own scripts: each trains in this process for a moment, and its network plays. Learning: test_learning.py."""

import importlib
import importlib.util
import math
import runpy
import sys

import gymnasium
import numpy as np
import pytest
import torch
from cleanrl_worker import fit
from cleanrl_worker.algorithms.experiment import linear_schedule
from cleanrl_worker.algorithms.pqn import lambda_returns
from cleanrl_worker.algorithms.qdagger_dqn_atari_impalacnn import teachers_share
from cleanrl_worker.algorithms.rainbow_atari import PrioritisedBuffer, project
from cleanrl_worker.checkpoints import Checkpoint, save_checkpoint
from cleanrl_worker.lanes import make_lanes
from cleanrl_worker.policy import load_policy
from cleanrl_worker.registry import ALGORITHMS, ENVPOOL, IMAGE, PLAYERS
from cleanrl_worker.state import State
from cleanrl_worker.teacher import load_teacher
from cleanrl_worker.wrappers.batches import Envpool, StandIn, ended
from mosaic_sdk.config import ConfigError

CATCH, RECALL = "CatchPixels-v0", "RecallCue-v0"
BATCHES = {"num_envs": 2, "num_steps": 8, "num_minibatches": 2, "update_epochs": 1, "total_timesteps": 32}
REPLAY = {"total_timesteps": 40, "buffer_size": 50, "learning_starts": 15, "batch_size": 4}
TAUGHT = {"total_timesteps": 32, "buffer_size": 40, "teacher_steps": 16, "offline_steps": 2, "learning_starts": 8}
OWN = [name for name, found in ALGORITHMS.items() if found.is_ours and not found.variant and name != "ppo"]


def play(algo, env_id, **arguments):
    """Run the script as __main__; returns its globals."""
    argv = [f"--{name.replace('_', '-')}={value}" for name, value in {"env_id": env_id, **arguments}.items()]
    before, sys.argv = sys.argv, [algo, "--no-cuda", *argv]
    try:
        return runpy.run_module(f"cleanrl_worker.algorithms.{algo}", run_name="__main__")
    finally:
        sys.argv = before


def arguments_of(algo):
    if algo.startswith("qdagger"):
        return {**TAUGHT, "batch_size": 4}
    return BATCHES if algo.startswith(("ppo", "pqn")) else {**REPLAY, "train_frequency": 4}


def checkpoint_of(algo, env_id, script):
    state = State(script, frozenset())
    state.note_names()
    return Checkpoint(algo, env_id, 0, **state.network())


@pytest.fixture
def teacher(tmp_path):
    """The folder of a run of pqn_atari_envpool on CatchPixels."""
    from cleanrl_worker.algorithms.pqn_atari_envpool import QNetwork

    fit.register_for(CATCH)
    network = QNetwork(gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(CATCH)]))
    about = {"algo": "pqn_atari_envpool", "env_id": CATCH, "global_step": 1}
    save_checkpoint(tmp_path / "checkpoints", {**about, "modules": {"q_network": network.state_dict()}})
    return tmp_path


@pytest.mark.parametrize("algo", OWN)
def test_an_own_script_learns_and_its_network_plays(algo, tmp_path, monkeypatch, teacher):
    monkeypatch.chdir(tmp_path)
    algorithm = ALGORITHMS[algo]
    kinds = {IMAGE: CATCH, ENVPOOL: CATCH, PLAYERS: algorithm.env_id}
    env_id = kinds.get(algorithm.takes, RECALL)
    fit.check_env(algorithm, env_id)
    more = {"teacher_path": teacher} if algo.startswith("qdagger") else {}

    script = play(algo, env_id, **arguments_of(algo), **more)

    assert script["optimizer"].state  # it has learned
    network = script.get("agent") or script["q_network"]
    assert all(torch.isfinite(part).all() for part in network.parameters())
    module = importlib.import_module(algorithm.module)
    checkpoint = checkpoint_of(algo, env_id, script)
    lanes = make_lanes(algorithm, module, env_id, 2, checkpoint)
    policy = load_policy(checkpoint, module, lanes[0])
    observations = [lane.reset(seed) for seed, lane in enumerate(lanes)]
    for _ in range(2):
        actions = policy.act(observations, [0, 1])
        observations = [lane.step(action).observation for lane, action in zip(lanes, actions, strict=True)]


def test_lambda_returns_mix_one_step_and_the_rest_of_the_batch():
    column = lambda *numbers: torch.tensor(numbers)[:, None]  # noqa: E731
    rewards, dones, next_values = column(1.0, 2.0, 4.0), column(0.0, 1.0, 0.0), column(10.0, 20.0, 30.0)

    found = lambda_returns(rewards, dones, next_values, gamma=0.5, lam=0.5)

    # The last step knows only the estimate; the second ended its episode.
    assert found.flatten().tolist() == [1 + 0.5 * (0.5 * 2.0 + 0.5 * 10.0), 2.0, 4 + 0.5 * 30.0]


def test_a_projected_distribution_keeps_its_mass_and_its_mean():
    atoms = torch.linspace(-2.0, 2.0, 9)
    probabilities = torch.softmax(torch.randn(3, 9), dim=1)

    found = project(probabilities, torch.tensor([0.1, -0.3, 1.0]), torch.tensor([0.3, 0.5, 0.0]), atoms)

    assert torch.allclose(found.sum(dim=1), torch.ones(3))
    mean = (probabilities * atoms).sum(dim=1)
    expected = torch.tensor([0.1, -0.3, 1.0]) + torch.tensor([0.3, 0.5, 0.0]) * mean
    assert torch.allclose((found * atoms).sum(dim=1), expected, atol=1e-5)


def test_a_prioritised_buffer_reads_returns_of_several_steps_and_only_complete_ones():
    fit.register_for(CATCH)
    envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(CATCH)])
    buffer = PrioritisedBuffer(8, envs, n_step=2, gamma=0.5)
    for number in range(11):
        picture = np.full((1, 84, 84), number, np.uint8)
        done = np.array([number == 7])
        buffer.add(picture, picture + 1, np.array([0]), np.array([float(number)]), done, [{}])

    # Steps 3 to 10 are in the ring. The picture after step 10 has replaced that of step 3; step 10 has no second one.
    assert sorted(int(buffer.observations[n, 0, 0, 0]) for n in np.flatnonzero(buffer.priorities)) == [4, 5, 6, 7, 8, 9]
    pictures, _, returns, after, discounts = buffer.read(np.array([4, 6, 7]))
    assert pictures[:, 0, 0].tolist() == [4, 6, 7]
    assert returns.tolist() == [4 + 0.5 * 5, 6 + 0.5 * 7, 7]
    assert discounts.tolist() == [0.25, 0, 0]
    assert int(after[0, 0, 0]) == 6
    buffer.note(np.array([4]), np.array([1e6]), 1.0)
    indices, weights = buffer.draw(100, beta=1.0)
    assert np.count_nonzero(indices == 4) > 95
    assert weights.max() == 1


def test_the_teachers_share_falls_as_the_student_improves():
    assert [teachers_share(student, 10.0) for student in (0.0, 5.0, 10.0, 20.0)] == [1.0, 0.5, 0.0, 0.0]
    assert teachers_share(-21.0, 1.0) == 1.0


def test_a_teacher_must_be_a_checkpoint_that_knows_values_of_this_environment(teacher, tmp_path):
    envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(CATCH)])

    values = load_teacher(str(teacher), CATCH, envs)(np.zeros((2, 4, 84, 84), np.uint8))

    assert values.shape == (2, 3)
    with pytest.raises(ConfigError, match=r"teacher_path is missing: .* algo=dqn_atari"):
        load_teacher("", CATCH, envs)
    with pytest.raises(ConfigError, match=f"environment {CATCH}, but this run's is Pong"):
        load_teacher(str(teacher), "Pong", envs)
    about = {"algo": "ppo_gru", "env_id": CATCH, "global_step": 1}
    other = save_checkpoint(tmp_path / "other", {**about, "modules": {"agent": {"weight": torch.zeros(1)}}})
    with pytest.raises(ConfigError, match="is of ppo_gru, which has no values of actions to teach with"):
        load_teacher(str(other), CATCH, envs)


def test_the_arguments_of_a_resumed_run_are_its_own():
    """A script's class Args counted as part of the state, and old arguments replaced the new ones."""
    script = {"args": type("Args", (), {"__module__": "__main__"})(), "total": 1}
    script["args"].learning_rate = 0.5
    state = State(script, frozenset())
    state.note_names()
    captured = state.capture()
    script["args"].learning_rate = 0.1

    state.restore(Checkpoint("pqn", "X", 0, **{**captured, "tensors": {"args": {"learning_rate": 0.5}}}))

    assert "args" not in captured["tensors"]
    assert script["args"].learning_rate == 0.1


def test_a_linear_schedule_ends_where_it_should():
    assert [linear_schedule(1.0, 0.0, 10, step) for step in (0, 5, 10, 20)] == [1.0, 0.5, 0.0, 0.0]


def test_the_stand_in_of_envpool_reports_every_episode_once():
    fit.register_for(CATCH)
    envs = StandIn(CATCH, 2, seed=1)
    envs.reset()

    counts = []
    for _ in range(12):
        observations, _, dones, infos = envs.step(np.array([1, 1]))
        counts += ended(dones, infos)

    assert observations.shape == (2, 4, 84, 84)
    assert [length for _, length in counts] == [6] * 4
    assert {total for total, _ in counts} <= {1.0, -1.0}


@pytest.mark.skipif(importlib.util.find_spec("envpool") is None, reason="envpool is not installed")
def test_a_step_in_which_envpool_resets_a_game_is_skipped():
    envs = Envpool("Breakout-v5", 1, seed=1)
    envs.reset()

    seen = []
    while len(seen) < 3:
        skipped = bool(envs.skips[0])
        _, _, dones, _ = envs.step(np.array([1]))
        if dones[0] or skipped:
            seen.append((bool(dones[0]), skipped, bool(envs.starts[0])))

    # A lost life ends the learner's episode; the next step ignores its action and starts a new one.
    assert seen[:2] == [(True, False, False), (False, True, True)]
    envs.close()


def test_lunar_lander_belongs_to_the_environment():
    env = gymnasium.make("LunarLander-v2")
    observation, _ = env.reset(seed=1)

    outcomes = [env.step(env.action_space.sample()) for _ in range(20)]

    assert observation.shape == (8,)
    assert all(math.isfinite(outcome[1]) for outcome in outcomes)
    env.close()


def test_the_registry_has_forty_algorithms_that_train():
    reasons = {name for name, found in ALGORITHMS.items() if found.problem}

    assert len(ALGORITHMS) - len(reasons) >= 40
    assert reasons == {"ppo_continuous_action_isaacgym"}
