"""Training, resuming and evaluation of small runs, in this process."""

import json
import shutil

import pytest
from mosaic_sdk.cli import STOPPED
from mosaic_sdk.files import read_json
from short import short_config

STEPS = 200


def evaluation(checkpoint, **more):
    return {"seed": 1_000_000, "extras": {"mode": "policy_eval", "policy_path": checkpoint, "eval_episodes": 3, **more}}


@pytest.fixture
def trained(trained_with):
    return trained_with("ppo")


def test_a_training_reports_and_saves(trained):
    assert trained.code == 0, trained.err
    saved = trained.events("checkpoint_saved")[-1]
    about = read_json(saved["path"] + ".commit.json")
    beats = trained.events("heartbeat")
    episodes = trained.kind("episode")

    assert saved["step"] == STEPS
    assert (about["algo"], about["env_id"], about["settings"]["parallels"]) == ("ppo", "CartPole-v1", 2)
    assert about["preset"] == "ppo/classic_control/CartPole-v1.yaml"
    assert beats[0]["total"] == STEPS
    assert "actor_loss" in trained.kind("metric")[0]["values"]
    assert [row["episode_index"] for row in episodes] == list(range(len(episodes)))
    assert all(row["terminated"] and row["total_reward"] == row["steps"] for row in episodes)
    assert 0 < episodes[0]["global_step"] <= episodes[-1]["global_step"] <= STEPS
    assert list((trained.folder / "tensorboard").rglob("events.out.tfevents.*"))
    assert json.loads((trained.folder / "analytics.json").read_text())["artifacts"]["tensorboard"]["log_dir"]


def test_a_resumed_training_continues(launch, trained):
    import torch

    more = {"mode": "resume_training", "policy_path": trained.checkpoint}
    second = launch({**short_config("ppo", **more), "total_timesteps": 2 * STEPS})

    assert second.code == 0, second.err
    assert second.events("checkpoint_loaded")[0]["step"] == STEPS
    assert all(row["global_step"] > STEPS for row in second.kind("episode"))
    before, after = (torch.load(run.checkpoint, weights_only=True) for run in (trained, second))
    assert after["agent"]["current_step"] == 2 * STEPS
    assert after["learner"]["iterations"] > before["learner"]["iterations"] > 0
    assert after["statistics"]["obs_rms"]["count"] > before["statistics"]["obs_rms"]["count"]


def test_a_resume_keeps_its_hyperparameters_and_needs_steps_left(launch, trained):
    more = {"mode": "resume_training", "policy_path": trained.checkpoint}
    same = launch(short_config("ppo", **more))
    changed = short_config("ppo", **more)
    changed.update(total_timesteps=2 * STEPS)
    changed["extras"]["algo_params"]["horizon_size"] = 16

    assert same.code == 2
    assert "nothing is left to train" in same.err
    assert "keeps its hyperparameters" in launch(changed).err


def test_the_restored_state_is_the_saved_one(launch, trained):
    import torch
    from mosaic_sdk.checkpoints import read
    from xuance_worker import checkpoint, library
    from xuance_worker.config import XuanceConfig
    from xuance_worker.state import capture, restore

    config = XuanceConfig.from_dict({"run_id": "TEST", **short_config("ppo")})
    setup = library.build(config)
    saved = torch.load(trained.checkpoint, weights_only=True)
    restore(setup.agent, checkpoint.load(read(trained.checkpoint)))
    again = {"format": saved["format"], **capture(setup.agent)}
    setup.agent.finish()
    setup.envs.close()

    assert flat(again) == flat(saved)


def flat(value):
    import torch

    if isinstance(value, dict):
        return {key: flat(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [flat(part) for part in value]
    return value.tolist() if isinstance(value, torch.Tensor) else value


def test_an_evaluation_plays_its_seeds_and_changes_nothing(launch, trained):
    first = launch(evaluation(trained.checkpoint))
    second = launch(evaluation(trained.checkpoint))

    assert first.code == 0, first.err
    assert first.summary["seeds"] == [1_000_000, 1_000_001, 1_000_002]
    assert first.summary["rows"] == second.summary["rows"]
    assert [row["episode_seed"] for row in first.kind("episode")] == first.summary["seeds"]
    assert first.summary["checkpoint_step"] == STEPS
    assert first.events("heartbeat")[0]["total"] == 3


def test_the_statistics_of_observations_do_not_move_in_an_evaluation(trained, tmp_path, monkeypatch):
    from mosaic_sdk.evaluation import Evaluation
    from xuance_worker.config import XuanceConfig
    from xuance_worker.evaluate import play
    from xuance_worker.policy import load_policy

    monkeypatch.setenv("MOSAIC_RUN_DIR", str(tmp_path))
    config = XuanceConfig.from_dict({"run_id": "TEST", **evaluation(trained.checkpoint)})
    setup = load_policy(config).setup
    rms = setup.agent.obs_rms
    before = (rms.count, rms.mean.tolist(), rms.var.tolist())
    found = Evaluation(run_id="TEST", worker="xuance", env_id="CartPole-v1")
    play(setup, [5, 6], found, lambda: None)

    assert (rms.count, rms.mean.tolist(), rms.var.tolist()) == before
    assert found.returns == alone(setup, [5, 6])
    setup.agent.finish()


def alone(setup, seeds):
    """The same policy in a plain loop over a new environment."""
    import gymnasium
    from xuance_worker.policy import Actor

    actor, returns = Actor(setup.agent, "ppo"), []
    env = gymnasium.make("CartPole-v1")
    for seed in seeds:
        observation, _ = env.reset(seed=seed)
        total, is_over = 0.0, False
        while not is_over:
            observation, reward, terminated, truncated, _ = env.step(int(actor.act(observation, None)))
            total, is_over = total + reward, terminated or truncated
        returns.append(total)
    return returns


def test_several_agents_train_and_are_evaluated(launch, trained_with):
    run = trained_with("iql")
    tested = launch(evaluation(run.checkpoint))

    row = run.kind("episode")[0]
    returns = row["metadata"]["returns"]
    assert sorted(returns) == ["agent_0", "agent_1", "agent_2"]
    assert row["total_reward"] == pytest.approx(sum(returns.values()) / 3)
    assert (row["steps"], row["truncated"]) == (25, True)
    assert tested.code == 0, tested.err
    assert [row["length"] for row in tested.summary["rows"]] == [25, 25, 25]
    assert sorted(tested.summary["rows"][0]["returns"]) == sorted(returns)


def test_sigterm_saves_and_leaves(launch, monkeypatch):
    import os
    import signal

    from xuance_worker.telemetry import Callback

    forward = Callback.on_train_episode_info

    def stop_after_an_episode(self, **more):
        forward(self, **more)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Callback, "on_train_episode_info", stop_after_an_episode)
    before = signal.getsignal(signal.SIGTERM)
    try:
        run = launch({**short_config("ppo"), "total_timesteps": 100_000})
    finally:
        signal.signal(signal.SIGTERM, before)

    assert run.code == STOPPED
    assert run.events("run_cancelled")
    assert not run.events("run_completed")
    assert run.events("checkpoint_saved")[-1]["step"] == run.kind("episode")[0]["global_step"]


def test_a_damaged_checkpoint_is_refused(launch, trained, tmp_path):
    damaged = shutil.copy(trained.checkpoint, tmp_path)
    shutil.copy(f"{trained.checkpoint}.commit.json", tmp_path)
    with open(damaged, "r+b") as file:
        file.truncate(100)

    run = launch(evaluation(damaged))

    assert run.code == 2
    assert "is damaged" in run.err
