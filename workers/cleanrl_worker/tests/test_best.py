"""Evaluation during a training: on its own seeds, the best policy is saved, and the training is not affected."""

import json
import os

import torch
from cleanrl_worker.best import FIRST_SEED, first_seed
from cleanrl_worker.checkpoints import load_checkpoint, save_checkpoint
from cleanrl_worker.plain import to_plain

EVERY = {"eval_every": 256, "eval_episodes": 3, "eval_max_episode_steps": 40}
PPO = {"algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 1024, "seed": 1}
DQN = {**PPO, "algo": "dqn", "total_timesteps": 600}
PARAMS = {"ppo": {"num_steps": 64}, "dqn": {"learning_starts": 100, "buffer_size": 500}}


def with_extras(config, **extras):
    return {**config, "extras": {"algo_params": PARAMS[config["algo"]], **extras}}


def plain(value):
    """A tree of values in which tensors can be compared."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value.tolist() if isinstance(value, torch.Tensor) else value


def state(run):
    """The part of a training's state that determines how it continues."""
    found = load_checkpoint(run)
    parts = (found.modules, found.optimizers, found.rng, found.tensors, found.buffers)
    return plain([to_plain(part) for part in parts])


def evaluations(trial):
    return [line for line in trial.measurements() if line.get("agent_id") == "eval"]


def scores(trial):
    lines = [line for line in trial.measurements() if line.get("name") == "eval/mean_return"]
    return {line["step"]: line["value"] for line in lines}


def test_an_evaluation_does_not_change_the_training_and_its_best_policy_is_kept(launch):
    plain_run, evaluated = launch(with_extras(PPO)), launch(with_extras(PPO, **EVERY))

    require_same_training(plain_run, evaluated)
    folder = os.path.join(evaluated.ground.run, "checkpoints", "best")
    with open(os.path.join(folder, "best.json")) as file:
        best = json.load(file)
    means = scores(evaluated)
    assert list(means) == [256, 512, 768, 1024]
    assert best["score"] == max(means.values()) == means[best["step"]]
    assert (best["episodes"], best["seeds"], best["version"]) == (3, [1_000_000, 1_000_001, 1_000_002], 1)
    assert sorted(os.listdir(folder)) == ["best.json", best["path"], f"{best['path']}.commit.json"]
    assert load_checkpoint(folder).global_step == best["step"]
    # A run's folder still stands for its newest checkpoint.
    assert load_checkpoint(evaluated.ground.run).global_step == 1024
    saved = [line["payload"] for line in evaluated.events("checkpoint_saved") if line["payload"].get("best")]
    assert (saved[-1]["step"], saved[-1]["score"]) == (best["step"], best["score"])

    again = {"mode": "policy_eval", "policy_path": folder, "eval_episodes": 3, "eval_max_episode_steps": 40}
    played = launch({"seed": FIRST_SEED, "extras": again})
    assert played.events("run_completed")[0]["payload"]["mean_return"] == best["score"]


def test_a_training_with_a_replay_buffer_is_evaluated_and_the_episodes_are_marked(launch):
    plain_run, evaluated = launch(with_extras(DQN)), launch(with_extras(DQN, **EVERY))

    require_same_training(plain_run, evaluated)
    lines = evaluations(evaluated)
    assert [line["global_step"] for line in lines] == [256] * 3 + [512] * 3 + [600] * 3
    assert [line["episode_seed"] for line in lines] == [1_000_000, 1_000_001, 1_000_002] * 3
    assert [line["episode_index"] for line in lines] == list(range(9))
    assert all(line["terminated"] or line["truncated"] for line in lines)
    assert evaluations(plain_run) == []
    assert not os.path.exists(os.path.join(plain_run.ground.run, "checkpoints", "best"))


def require_same_training(one, other):
    assert (one.code, other.code) == (0, 0), (one.last_words, other.last_words)
    assert state(one.ground.run) == state(other.ground.run)
    assert returns(one) == returns(other)


def returns(trial):
    lines = [line for line in trial.measurements() if line["event_type"] == "episode"]
    return [line["total_reward"] for line in lines if line.get("agent_id") != "eval"]


def test_its_seeds_are_never_those_of_the_training():
    assert first_seed({"seed": 1, "num_envs": 8}) == FIRST_SEED
    assert first_seed({"seed": FIRST_SEED - 2, "num_envs": 8}) == FIRST_SEED + 6
    assert first_seed({}) == FIRST_SEED


def test_until_best_json_names_a_new_checkpoint_the_old_one_is_the_best(tmp_path):
    for step in (100, 200):
        save_checkpoint(tmp_path, {"algo": "dqn", "env_id": "X", "global_step": step, "modules": {}})
    (tmp_path / "best.json").write_text(json.dumps({"path": "checkpoint-000000000100.pt"}))

    assert load_checkpoint(tmp_path).global_step == 100
