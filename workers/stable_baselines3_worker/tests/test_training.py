"""Trainings of a few hundred steps: what is reported, saved, resumed, evaluated and stopped."""

import json
import signal
import threading

import pytest
import torch
from stable_baselines3 import A2C, DQN

DQN_PARAMS = {"learning_starts": 50, "buffer_size": 500, "batch_size": 8, "train_freq": 4}


def weights(path):
    model = A2C.load(path / "model.zip", device="cpu")
    return torch.cat([value.flatten() for value in model.policy.state_dict().values()])


def test_a_training_reports_metrics_episodes_and_a_checkpoint_with_its_settings(run):
    extras = {"n_envs": 2, "checkpoint_every": 200, "keep_checkpoints": 2, "algo_params": {"n_steps": 2}}
    done = run(algo="a2c", total_timesteps=600, extras=extras)

    assert done.code == 0, done.errors
    assert done.of("run_completed")[0]["payload"]["total_steps"] == 600
    episodes = done.of("episode")
    assert sum(one["steps"] for one in episodes) <= 600
    assert all(one["total_reward"] == one["steps"] and one["terminated"] for one in episodes)
    assert {one["env_index"] for one in episodes} == {0, 1}
    assert any("rollout/ep_rew_mean" in line["values"] for line in done.of("metric"))
    assert [one["payload"]["step"] for one in done.of("checkpoint_saved")] == [200, 400, 600]
    assert [path.name[-3:] for path in sorted(done.folder.glob("checkpoints/checkpoint-*"))] == ["400", "600"]
    commit = json.loads((done.newest / "commit.json").read_text())
    assert (commit["algo"], commit["settings"]["extras"]["n_envs"]) == ("a2c", 2)
    assert list((done.folder / "tensorboard").glob("events.*"))
    assert done.of("heartbeat")[-1]["payload"] == {"progress": 600, "total": 600}
    assert json.loads((done.folder / "analytics.json").read_text())["worker_type"] == "stable_baselines3"


def test_evaluations_during_a_training_keep_the_best_and_do_not_change_it(run):
    plain = run(algo="a2c", total_timesteps=300)
    watched = run(algo="a2c", total_timesteps=300, extras={"eval_every": 100, "eval_episodes": 2})

    assert torch.equal(weights(plain.newest), weights(watched.newest))
    best = json.loads((watched.folder / "checkpoints/best/best.json").read_text())
    means = [
        line["values"]["eval/mean_return"] for line in watched.of("metric") if "eval/mean_return" in line["values"]
    ]
    assert (len(means), best["score"], best["seeds"]) == (3, max(means), [1000000, 1000001])
    evaluated = [line for line in watched.of("episode") if line.get("agent_id") == "eval"]
    assert len(evaluated) == 6


def test_a_resumed_training_continues_with_weights_steps_and_replay_buffer(run):
    first = run(algo="dqn", total_timesteps=200, extras={"algo_params": DQN_PARAMS})
    extras = {"mode": "resume_training", "policy_path": str(first.newest), "algo_params": {"learning_rate": 1e-3}}
    second = run(total_timesteps=300, extras=extras)

    assert second.code == 0, second.errors
    assert second.of("checkpoint_loaded")[0]["payload"]["step"] == 200
    model = DQN.load(second.newest / "model.zip")
    model.load_replay_buffer(second.newest / "replay_buffer.pkl")
    assert (model.num_timesteps, model.replay_buffer.pos, model.learning_rate) == (300, 300, 1e-3)
    assert min(line["global_step"] for line in second.of("episode")) > 200
    with_less = run(total_timesteps=100, extras=extras)
    assert (with_less.code, "nothing is left to train" in with_less.errors) == (2, True)
    reshaped = run(total_timesteps=300, extras={**extras, "algo_params": {"buffer_size": 9}})
    assert (reshaped.code, "buffer_size: cannot be changed" in reshaped.errors) == (2, True)


def test_an_evaluation_uses_the_checkpoints_wrappers_and_unseen_seeds(run):
    extras = {"normalize": True, "env_kwargs": {"goal_velocity": 0.01}}
    trained = run(algo="a2c", env_id="MountainCarContinuous-v0", total_timesteps=50, extras=extras)
    extras = {"mode": "policy_eval", "policy_path": str(trained.folder), "eval_episodes": 1}

    done = run(kind="evals", extras=extras)

    assert done.code == 0, done.errors
    summary = json.loads((done.folder / "eval_summary.json").read_text())
    assert (summary["seeds"], summary["env_id"], summary["algo"]) == ([1000000], "MountainCarContinuous-v0", "a2c")
    assert summary["checkpoint_step"] == 50
    assert summary["rows"][0]["length"] <= 999
    assert (trained.newest / "normalizer.pkl").exists()
    other = run(kind="evals", env_id="CartPole-v1", extras=extras)
    assert (other.code, "this run's is CartPole-v1" in other.errors) == (2, True)


def test_a_checkpoint_from_elsewhere_is_not_loaded_unless_it_is_trusted(run, tmp_path):
    trained = run(algo="a2c", total_timesteps=10)
    elsewhere = tmp_path / trained.newest.name
    trained.newest.rename(elsewhere)
    extras = {"mode": "policy_eval", "policy_path": str(elsewhere), "eval_episodes": 1}

    refused = run(kind="evals", extras=extras)
    trusted = run(kind="evals", extras={**extras, "trust_checkpoint": True})

    assert (refused.code, trusted.code) == (2, 0)
    assert "contains pickles" in refused.errors


def test_a_training_that_is_stopped_saves_first(run):
    threading.Timer(1.0, signal.raise_signal, [signal.SIGTERM]).start()

    done = run(algo="a2c", total_timesteps=10**8, extras={"checkpoint_every": 0})

    assert done.code == 143
    assert [line["event"] for line in done.lines if "event" in line][-2:] == ["checkpoint_saved", "run_cancelled"]
    assert done.of("checkpoint_saved")[0]["payload"]["step"] == int(done.newest.name.partition("-")[2])


def test_what_the_library_refuses_is_one_sentence(run):
    wrong_actions = run(algo="dqn", env_id="Pendulum-v1", total_timesteps=10)
    wrong_schedule = run(total_timesteps=10, extras={"algo_params": {"learning_rate": "fast"}})

    assert (wrong_actions.code, wrong_schedule.code) == (1, 2)
    assert wrong_actions.errors.startswith("dqn on Pendulum-v1: The algorithm only supports")
    assert "'fast' is neither a number nor lin_" in wrong_schedule.errors


@pytest.mark.parametrize(
    ("algo", "env_id", "params"),
    [
        ("recurrent_ppo", "CartPole-v1", {"n_steps": 16, "batch_size": 16, "n_epochs": 1}),
        ("maskable_ppo", "CartPole-v1", {"n_steps": 16, "batch_size": 16, "learning_rate": "lin_1e-3"}),
        ("td3", "Pendulum-v1", {"learning_starts": 10, "buffer_size": 100, "action_noise": 0.1}),
        ("ppo", "MiniGrid-Empty-5x5-v0", {"n_steps": 16, "batch_size": 16, "policy_kwargs": {"activation_fn": "ReLU"}}),
    ],
)
def test_algorithms_of_each_kind_train_and_play(run, algo, env_id, params):
    trained = run(algo=algo, env_id=env_id, total_timesteps=32, extras={"algo_params": params})
    played = run(
        kind="evals", extras={"mode": "policy_eval", "policy_path": str(trained.folder), "eval_episodes": 1}, seed=7
    )

    assert (trained.code, played.code) == (0, 0), trained.errors + played.errors
    assert played.of("episode")[0]["episode_seed"] == 7
