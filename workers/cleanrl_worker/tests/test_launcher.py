"""Complete trainings, started from the command line as the daemon starts them: real scripts, real processes."""

import json
import os
from pathlib import Path

import pytest
from cleanrl_worker.checkpoints import load_checkpoint

DQN = {
    "algo": "dqn",
    "env_id": "CartPole-v1",
    "total_timesteps": 300,
    "seed": 1,
    "extras": {
        "checkpoint_every": 150,
        "algo_params": {"learning_starts": 100, "buffer_size": 500, "save_model": True},
    },
}
PPO = {
    "algo": "ppo_upstream",
    "env_id": "CartPole-v1",
    "total_timesteps": 512,
    "seed": 1,
    "extras": {"algo_params": {"num_steps": 64}},
}


def names(trial):
    return [line["event"] for line in trial.events()]


def checkpoints(trial):
    return sorted(path.name for path in Path(trial.ground.run, "checkpoints").glob("*.pt"))


def test_upstreams_ppo_trains_unmodified_and_everything_is_emitted(launch):
    trial = launch(PPO)

    assert trial.code == 0, trial.last_words
    metrics = {line["name"] for line in trial.measurements() if line.get("event_type") == "metric"}
    episodes = [line for line in trial.measurements() if line.get("event_type") == "episode"]
    assert {"charts/episodic_return", "charts/SPS", "charts/learning_rate", "losses/value_loss"} <= metrics
    assert episodes
    assert (names(trial)[0], names(trial)[-1]) == ("run_started", "run_completed")
    assert trial.events("heartbeat")[-1]["payload"]["progress"] == 512
    assert trial.events("run_completed")[0]["payload"]["steps"] == 512
    assert checkpoints(trial) == ["checkpoint-000000000512.pt"]
    assert set(load_checkpoint(trial.ground.run).modules) == {"agent"}
    assert os.listdir(os.path.join(trial.ground.run, "tensorboard"))


def test_tensorboard_lists_a_run_once_and_nothing_is_left_in_the_scripts_own_folder(launch):
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

    trial = launch({**PPO, "total_timesteps": 256})
    listed = EventMultiplexer().AddRunsFromDirectory(trial.ground.run)

    assert [name.split("__")[0] for name in listed.Runs()] == ["tensorboard/CartPole-v1"]
    assert not os.path.lexists(os.path.join(trial.ground.run, "runs"))


def test_a_run_of_complete_batches_ends_at_a_hundred_percent(launch):
    trial = launch({**PPO, "total_timesteps": 600})  # two batches of 256 steps

    beats = [line["payload"] for line in trial.events("heartbeat")]
    assert {beat["total"] for beat in beats if beat["progress"]} == {512}
    assert any(beat == {"progress": 0, "total": 512} for beat in beats)  # known as soon as the training starts
    assert beats[-1] == {"progress": 512, "total": 512}


@pytest.mark.parametrize("config", [PPO, DQN], ids=["gym", "gymnasium"])
def test_episodes_say_how_they_ended_and_at_which_step(launch, config):
    trial = launch({**config, "total_timesteps": 512})

    episodes = [line for line in trial.measurements() if line.get("event_type") == "episode"]
    assert episodes
    assert all(line["terminated"] is True and line["truncated"] is False for line in episodes)
    steps = [line["global_step"] for line in episodes]
    assert steps == sorted(steps)
    assert all(0 < step <= 512 for step in steps)
    if config["algo"] == "dqn":  # one environment: an episode ends after its own and all earlier steps
        assert steps == [sum(line["steps"] for line in episodes[: n + 1]) for n in range(len(episodes))]


def test_dqn_saves_regularly_and_resumes_bit_for_bit(launch):
    whole = launch(DQN)
    half = os.path.join(whole.ground.run, "checkpoints", "checkpoint-000000000150.pt")
    # Only the checkpoint: it has the algorithm, the environment, the steps and the hyperparameters.
    resumed = launch({"extras": {"mode": "resume_training", "policy_path": half}})

    assert (whole.code, resumed.code) == (0, 0), (whole.last_words, resumed.last_words)
    assert checkpoints(whole) == ["checkpoint-000000000150.pt", "checkpoint-000000000300.pt"]
    assert resumed.events("checkpoint_loaded")[0]["payload"] == {"path": half, "step": 150, "not_carried_on": []}
    assert same(load_checkpoint(whole.ground.run), load_checkpoint(resumed.ground.run))
    with open(os.path.join(whole.ground.run, "analytics.json")) as file:
        files = json.load(file)["artifacts"]["checkpoints"]["files"]
    assert any(name.endswith("dqn.cleanrl_model") for name in files)


def test_a_resumed_training_is_recorded_under_the_algorithm_that_ran(launch):
    first = launch({**PPO, "total_timesteps": 256})
    second = launch({"total_timesteps": 512, "extras": {"mode": "resume_training", "policy_path": first.ground.run}})

    assert second.code == 0, second.last_words
    assert second.events("run_completed")[0]["payload"]["algo"] == "ppo_upstream"
    with open(os.path.join(second.ground.run, "analytics.json")) as file:
        assert json.load(file)["metadata"]["algo"] == "ppo_upstream"


def same(one, other):
    """Weights, optimizers and random numbers are equal bit by bit."""
    pairs = [(one.modules, other.modules), (one.optimizers, other.optimizers), (one.rng, other.rng)]
    pairs += [(one.buffers, other.buffers), (one.tensors, other.tensors)]
    return all(_bytes(a) == _bytes(b) for a, b in pairs)


def _bytes(value):
    if isinstance(value, dict):
        return {name: _bytes(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_bytes(part) for part in value]
    if hasattr(value, "numpy"):
        value = value.numpy()
    return value.tobytes() if hasattr(value, "tobytes") else value


def test_sigterm_saves_once_at_a_safe_point_and_reports_it(launch):
    extras = {**DQN["extras"], "checkpoint_every": 0}
    trial = launch({**DQN, "total_timesteps": 10_000_000, "extras": extras}, wait=False)
    assert trial.wait_for(lambda: trial.measurements(), 600)

    trial.terminate()

    assert trial.wait(60) == 143
    assert names(trial)[-1] == "run_cancelled"
    assert len(trial.events("checkpoint_saved")) == 1
    assert load_checkpoint(trial.ground.run).global_step > 0
    assert load_checkpoint(trial.ground.run).left_out == []
    assert trial.leftovers == []


def test_a_dry_run_prints_the_arguments_and_what_differs(launch):
    trial = launch(DQN, "--dry-run")

    text = trial.stdout.decode()
    assert trial.code == 0
    assert '"learning_starts": 100' in text.split("differs from the script's own defaults:")[1].splitlines()[0]
    assert trial.measurements() == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"algo": "dqnn"}, "no algorithm 'dqnn'. Did you mean"),
        ({"algo": "ppo_continuous_action_isaacgym"}, "isaacgym cannot run here"),
        ({"algo": "dqn", "extras": {"algo_params": {"gamma": 2.0}}}, "gamma: must be at most 1"),
        ({"extras": {"mode": "resume_training", "policy_path": "/no/such.pt"}}, "there is no checkpoint /no/such.pt"),
        ({"algo": "dqn", "extras": {"curriculum_schedule": [{"env_id": "X"}]}}, "curriculum training uses ppo"),
        (
            {"algo": "ppo", "total_timesteps": 512, "extras": {"upstream_path": "/tmp"}},
            "ppo is MOSAIC's own; the checkout's version is ppo_upstream",
        ),
    ],
)
def test_a_config_that_is_invalid_without_torch_is_refused_immediately(launch, config, message):
    trial = launch(config)

    assert trial.code == 2
    assert message in trial.events("run_failed")[0]["payload"]["error"]
    assert message in trial.last_words


def test_a_config_that_is_refused_later_is_reported_in_one_sentence_too(launch):
    trial = launch({"algo": "dqn", "env_id": "CartPol-v1"})

    assert trial.code == 2
    assert Path(trial.stderr_file).read_text() == f"{trial.events('run_failed')[0]['payload']['error']}\n"
    assert trial.last_words.startswith("env_id: there is no environment 'CartPol-v1'. Did you mean CartPole-v1")


DIVERGES = """
import argparse, gym, gymnasium

def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env-id", type=str, default="CartPole-v1")
    parser.add_argument("--total-timesteps", type=int, default=100)
    return parser.parse_args()

if __name__ == "__main__":
    args = parse_args()
    for global_step in range(args.total_timesteps):
        raise ValueError("Expected parameter logits, but found invalid values:\\\\n" + "[nan, nan]\\\\n" * 100)
"""


def test_a_network_that_returns_nan_is_reported_in_one_line(launch, tmp_path):
    (tmp_path / "mine.py").write_text(DIVERGES)

    trial = launch({"algo": "mine", "total_timesteps": 100, "extras": {"upstream_path": str(tmp_path)}})

    message = (
        "the training has diverged: its network returns NaN. Lower the learning rate. (ValueError: Expected parameter"
    )
    assert trial.code == 1
    assert trial.events("run_failed")[0]["payload"]["error"].startswith(message)
    assert Path(trial.stderr_file).read_text().splitlines()[-1].startswith(message)
    # What the libraries print at import is hidden.
    assert "unmaintained" not in Path(trial.stderr_file).read_text()
    assert "shimmy" not in Path(trial.stderr_file).read_text()
