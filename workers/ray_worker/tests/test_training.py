"""Whole lives of small runs, in this process and without a Ray instance. The slow ones learn, or start Ray."""

import json
import os
import subprocess

import pytest
from conftest import SMALL, episodes, events
from mosaic_sdk.lab.trial import Trial

pytestmark = pytest.mark.timeout(900)
PPO = {"algo": "ppo", "env_id": "CartPole-v1", "seed": 1}


def test_a_training_is_saved_resumed_and_evaluated(runs):
    few = {"report_every": 128, "algo_params": SMALL}
    code, lines, folder = runs.run("first", **PPO, total_timesteps=256, extras=few)
    assert code == 0
    assert [one["step"] for one in events(lines, "checkpoint_saved")] == [256]
    assert sum(one["steps"] for one in episodes(lines)) <= 256
    assert all(one["global_step"] <= 256 for one in episodes(lines))
    assert list((folder / "tensorboard").iterdir())
    assert json.loads((folder / "analytics.json").read_text())["artifacts"]["tensorboard"]

    resumed = {"mode": "resume_training", "policy_path": str(folder)}
    code, more, second = runs.run("second", total_timesteps=384, extras=resumed)
    assert code == 0
    assert events(more, "checkpoint_loaded")[0]["step"] == 256
    assert [one["step"] for one in events(more, "checkpoint_saved")] == [384]
    assert episodes(more)[0]["episode_index"] == len(episodes(lines))
    progress = [one["progress"] for one in events(more, "heartbeat")]
    assert progress == sorted(progress)
    assert progress[-1] == 384

    code, _, _ = runs.run("third", total_timesteps=384, extras={**resumed, "policy_path": str(second)})
    assert code == 2  # nothing is left to train

    evaluated = {"mode": "policy_eval", "policy_path": str(second), "eval_episodes": 2}
    code, lines, folder = runs.run("eval", extras=evaluated)
    again = runs.run("again", extras=evaluated)[2]
    summary = json.loads((folder / "eval_summary.json").read_text())
    assert code == 0
    assert (summary["seeds"], summary["checkpoint_step"], summary["algo"]) == ([1000000, 1000001], 384, "ppo")
    assert [one["total_reward"] for one in episodes(lines)] == [row["return"] for row in summary["rows"]]
    assert json.loads((again / "eval_summary.json").read_text())["rows"] == summary["rows"]


def test_several_agents_train_together_and_are_evaluated(runs):
    few = {"report_every": 100, "algo_params": {**SMALL, "train_batch_size_per_learner": 100}}
    env = {"algo": "ppo", "env_id": "mpe2/simple_spread_v3", "total_timesteps": 100}
    code, lines, folder = runs.run("spread", **env, extras=few)
    returns = episodes(lines)[0]["metadata"]["agent_returns"]
    assert code == 0
    assert set(returns) == {"agent_0", "agent_1", "agent_2"}
    assert episodes(lines)[0]["total_reward"] == pytest.approx(sum(returns.values()))
    assert episodes(lines)[0]["steps"] == 25

    turns = {"algo": "ppo", "env_id": "pettingzoo/tictactoe_v3", "total_timesteps": 100}
    code, lines, game = runs.run("turns", **turns, extras={**few, "policies": "per_agent"})
    assert code == 0
    assert set(episodes(lines)[0]["metadata"]["agent_returns"]) == {"player_1", "player_2"}

    for name, place in (("spread", folder), ("turns", game)):
        evaluated = {"mode": "policy_eval", "policy_path": str(place), "eval_episodes": 1}
        code, _, results = runs.run(f"eval-{name}", extras=evaluated)
        row = json.loads((results / "eval_summary.json").read_text())["rows"][0]
        assert code == 0
        assert row["return"] == pytest.approx(sum(row["agent_returns"].values()))


def test_the_parameters_are_those_of_the_installed_rllib():
    from ray_worker.algorithms import FILE
    from ray_worker.parameters import collect

    assert json.loads(FILE.read_text()) == collect()


def test_a_checkpoint_from_elsewhere_is_refused_unless_it_is_trusted(runs, tmp_path):
    from mosaic_sdk.checkpoints import commit

    stranger = tmp_path / "elsewhere" / "checkpoint-000000000010"
    stranger.mkdir(parents=True)
    commit(stranger, worker="ray", step=10, settings={})

    code, lines, _ = runs.run("eval", extras={"mode": "policy_eval", "policy_path": str(stranger)})

    assert code == 2
    assert "set trust_checkpoint=true" in events(lines, "run_failed")[0]["error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algo", "env_id"),
    [
        *(("dqn", "CartPole-v1"), ("impala", "CartPole-v1"), ("appo", "CartPole-v1"), ("sac", "Pendulum-v1")),
        *(("tqc", "Pendulum-v1"), ("ppo", "Pendulum-v1"), ("ppo", "FrozenLake-v1"), ("sac", "CartPole-v1")),
    ],
)
def test_every_algorithm_trains_and_its_policy_plays(runs, algo, env_id):
    code, lines, folder = runs.run(
        "train", algo=algo, env_id=env_id, total_timesteps=1100, extras={"report_every": 250}
    )
    assert code == 0
    assert episodes(lines)

    code, _, results = runs.run("eval", extras={"mode": "policy_eval", "policy_path": str(folder), "eval_episodes": 1})
    assert code == 0
    assert json.loads((results / "eval_summary.json").read_text())["rows"][0]["length"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ppo_learns_cart_pole(runs):
    params = {"lr": 3e-4, "train_batch_size_per_learner": 2000, "minibatch_size": 200, "num_epochs": 10}
    params.update(vf_clip_param=1e4, lambda_=0.95)
    extras = {"num_envs_per_env_runner": 8, "algo_params": params}
    folder = runs.run("learn", **PPO, total_timesteps=40_000, extras=extras)[2]

    results = runs.run("eval", extras={"mode": "policy_eval", "policy_path": str(folder), "eval_episodes": 20})[2]

    assert json.loads((results / "eval_summary.json").read_text())["mean_return"] >= 300


@pytest.mark.slow
@pytest.mark.parametrize("end", ["normal", "SIGTERM", "SIGKILL"])
def test_a_ray_instance_ends_with_its_run(end):
    long = {**PPO, "total_timesteps": 300 if end == "normal" else 10**8}
    long["extras"] = {"num_env_runners": 1, "report_every": 128, "algo_params": SMALL}
    with Trial("ray_worker.cli", long) as trial:
        trial.start()
        assert trial.wait_for(lambda: bool(trial.measurements()), 600), trial.last_words
        if end == "normal":
            assert trial.wait(120) == 0
        elif end == "SIGTERM":
            trial.terminate()
            assert trial.wait(30) == 143
            assert trial.events("checkpoint_saved")
        else:
            os.kill(trial.pid, 9)
            assert trial.wait(10) == -9
        # A killed run has nobody to wait for its processes; Ray ties them to it.
        gone = trial.wait_for(lambda: not _ray_processes(trial.ground.path), 20) or not _ray_processes(
            trial.ground.path
        )

        assert gone, _ray_processes(trial.ground.path)
        if end != "SIGKILL":
            assert trial.ground.files_outside() == []


def _ray_processes(folder: str) -> list[str]:
    listed = subprocess.run(["ps", "-eo", "pid,stat,args"], capture_output=True, text=True, check=True).stdout
    mine = [line for line in listed.splitlines() if folder in line and " Z" not in line[:20]]
    return [line for line in mine if "ps -eo" not in line]
