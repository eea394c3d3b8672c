"""Whole trainings through the command line, as the daemon starts them: real scripts, real processes."""

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


def test_upstreams_ppo_trains_unmodified_and_tells_everything(launch):
    trial = launch(PPO)

    assert trial.code == 0, trial.last_words
    told = {line["name"] for line in trial.measurements() if line.get("event_type") == "metric"}
    episodes = [line for line in trial.measurements() if line.get("event_type") == "episode"]
    assert {"charts/episodic_return", "charts/SPS", "charts/learning_rate", "losses/value_loss"} <= told
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


def test_a_run_with_whole_batches_only_ends_at_a_hundred_percent(launch):
    trial = launch({**PPO, "total_timesteps": 600})  # two batches of 256 steps

    beats = [line["payload"] for line in trial.events("heartbeat")]
    assert {beat["total"] for beat in beats if beat["progress"]} == {512}
    assert any(beat == {"progress": 0, "total": 512} for beat in beats)  # known as soon as the training begins
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
    if config["algo"] == "dqn":  # one environment: an episode ends when its own steps and all before it are made
        assert steps == [sum(line["steps"] for line in episodes[: n + 1]) for n in range(len(episodes))]


def test_dqn_saves_every_so_many_steps_and_goes_on_bit_for_bit(launch):
    whole = launch(DQN)
    half = os.path.join(whole.ground.run, "checkpoints", "checkpoint-000000000150.pt")
    # Nothing but the checkpoint: algorithm, environment, steps and hyperparameters are all in it.
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


def test_sigterm_saves_once_at_a_safe_point_and_tells(launch):
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


def test_a_dry_run_tells_the_arguments_and_what_differs(launch):
    trial = launch(DQN, "--dry-run")

    text = trial.stdout.decode()
    assert trial.code == 0
    assert '"learning_starts": 100' in text.split("differs from the script's own defaults:")[1].splitlines()[0]
    assert trial.measurements() == []


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"algo": "dqnn"}, "no algorithm 'dqnn'. Did you mean"),
        ({"algo": "pqn"}, "pqn cannot run here"),
        ({"algo": "dqn", "extras": {"algo_params": {"gamma": 2.0}}}, "gamma: it must be at most 1"),
        ({"extras": {"mode": "resume_training", "policy_path": "/no/such.pt"}}, "there is no checkpoint /no/such.pt"),
        ({"algo": "dqn", "extras": {"curriculum_schedule": [{"env_id": "X"}]}}, "curriculum training uses ppo"),
        (
            {"algo": "ppo", "total_timesteps": 512, "extras": {"upstream_path": "/tmp"}},
            "ppo is MOSAIC's own; the checkout's is ppo_upstream",
        ),
    ],
)
def test_what_can_be_refused_without_torch_is_refused_at_once(launch, config, words):
    trial = launch(config)

    assert trial.code == 2
    assert words in trial.events("run_failed")[0]["payload"]["error"]
    assert words in trial.last_words


def test_what_is_refused_later_is_told_as_one_sentence_too(launch):
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


def test_a_network_that_gives_nan_is_told_as_what_it_is_and_in_one_line(launch, tmp_path):
    (tmp_path / "mine.py").write_text(DIVERGES)

    trial = launch({"algo": "mine", "total_timesteps": 100, "extras": {"upstream_path": str(tmp_path)}})

    words = (
        "the training has diverged: its network returns NaN. Lower the learning rate. (ValueError: Expected parameter"
    )
    assert trial.code == 1
    assert trial.events("run_failed")[0]["payload"]["error"].startswith(words)
    assert Path(trial.stderr_file).read_text().splitlines()[-1].startswith(words)
    # What the libraries say while they are imported is not kept for last words.
    assert "unmaintained" not in Path(trial.stderr_file).read_text()
    assert "shimmy" not in Path(trial.stderr_file).read_text()
