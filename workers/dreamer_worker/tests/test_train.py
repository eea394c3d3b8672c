"""--script train and --script eval: one process that plays, learns, saves, resumes, and evaluates."""

import importlib.util
import json

import numpy as np
import pytest
from dreamer_worker import settings
from dreamer_worker.checkpoint import Epochs, read_arrays
from dreamer_worker.config import DreamerConfig
from dreamer_worker.evaluate import Policy
from dreamer_worker.runtime import Progress
from mosaic_sdk.config import ConfigError

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="the agent needs jax")
TINY = {
    "run_id": "TEST",
    "script": "train",
    "env": "dummy_memory",
    "env_options": {"length": 2},
    "size": "debug",
    "agent": {"optimizer": {"warmup": 0, "lr": 1e-3}, "compute": {"dtype": "float32"}},
    "envs": 2,
    "eval_envs": 1,
    "batch_size": 2,
    "batch_length": 6,
    "train_ratio": 2,
    "replay_gb": 0.01,
    "outputs": ["jsonl"],
    **{f"{name}_every_s": 1000 for name in ("log", "report", "save")},
}


def ask_for(run, **changes):
    run.config.write_text(json.dumps({**json.loads(run.config.read_text()), **changes}))


def same(one, other):
    assert one.keys() == other.keys()
    return [key for key in one if not np.array_equal(one[key], other[key])] == []


@needs_jax
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_resumed_training_has_the_same_weights_bit_for_bit_and_continues(quickly_compiled, training_in, tmp_path):
    first = training_in(tmp_path, steps=60)
    first.run()
    learned, counted = first.agent.save(), first.counters.to_dict()

    second = training_in(tmp_path, steps=100)
    second.restore()
    assert same(second.agent.save(), learned)
    assert {**second.counters.to_dict(), "launches": 1} == {**counted, "launches": 1}
    assert second.replay.limiter.save() == first.replay.limiter.save()
    for name in ("train", "eval"):
        assert second.replay.buffers[name].steps == first.replay.buffers[name].steps
    second.run()

    assert counted["updates"] > 0
    assert int(learned["moments/updates"]) == counted["updates"]
    assert second.counters["env_steps"] == 100
    assert second.counters["updates"] > counted["updates"]
    assert int(second.agent.save()["moments/updates"]) == second.counters["updates"]
    assert not same(second.agent.save(), learned)
    epochs = Epochs(tmp_path / "checkpoints")
    assert same(read_arrays(epochs.path(epochs.newest()) / "agent.npz"), second.agent.save())


@needs_jax
@pytest.mark.timeout(900)
def test_a_policy_continues_from_the_action_taken_not_from_its_own(quickly_compiled, training_in, tmp_path):
    training = training_in(tmp_path)
    training.save()

    states = []
    for done in (0, 1):
        policy = Policy(training.envs[0], training.config)
        first = training.envs[0].reset()
        policy.choose(first)
        policy.took({"action": done})
        policy.choose({**first, "is_first": np.bool_(False)})
        states.append(policy._carry["deter"])

    assert not np.allclose(*states)


def test_evaluation_envs_play_the_most_likely_actions_and_fill_the_eval_buffer(training_in, tmp_path):
    training = training_in(tmp_path, random_agent=True, steps=80)
    asked = []
    policy = training.agent.policy
    training.agent.policy = lambda carry, obs, mode: (asked.append((mode, len(obs["is_first"]))), policy(carry, obs))[1]

    training.run()

    assert set(asked) == {("train", 2), ("eval", 1)}
    assert training.counters["env_steps"] == 80  # of training envs only
    assert training.replay.buffers["train"].steps == 80
    assert training.replay.buffers["eval"].steps == 40
    assert training.counters["eval_episodes"] == 40 // 4
    written = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    assert 0 <= written["eval_episode/score"] <= 1
    assert written["eval_episode/length"] == 3


def test_a_report_covers_training_and_evaluation_sequences(training_in, tmp_path):
    training = training_in(tmp_path, random_agent=True, steps=80)
    training.report()  # there is nothing yet

    training.run()
    training.report()

    stats = training.logger._averages.take()
    assert {"report/loss/total", "eval/loss/total"} <= stats.keys()


@needs_jax
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_stopped_training_saves_and_can_be_resumed_and_evaluated(run_of, monkeypatch):
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # it is compiled four times
    real = {"random_agent": False, "script": "train", "size": "debug", "save_every_s": 1000, "report_every_s": 1000}
    run = run_of(**real, steps=10_000_000).start()
    run.until(lambda: (run.folder / "counters.bin").exists() and run.counters["updates"] > 3)
    assert run.terminate().wait() == 143, run.stderr
    stopped = run.counters.to_dict()

    epochs = Epochs(run.folder / "checkpoints")
    newest = epochs.newest()
    assert epochs.read(newest)["counters"] == stopped
    learned = read_arrays(epochs.path(newest) / "agent.npz")
    assert int(learned["moments/updates"]) == stopped["updates"]

    # Without steps left it saves what it loaded.
    played = stopped["env_steps"]
    ask_for(run, steps=played)
    assert run.start().wait() == 0, run.stderr
    assert epochs.newest() == newest + 1
    assert same(read_arrays(epochs.path(newest + 1) / "agent.npz"), learned)

    ask_for(run, steps=played + 40)
    assert run.start().wait() == 0, run.stderr
    assert run.counters["env_steps"] == played + 40
    assert run.counters["updates"] > stopped["updates"]

    assert run.start("--script", "eval").wait() == 0, run.stderr
    summary = json.loads((run.folder / "eval_summary.json").read_text())
    assert (summary["episodes"], summary["checkpoint_epoch"]) == (10, newest + 2)
    assert run.counters["env_steps"] == played + 40  # evaluation is not training


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder of a run that stored its settings."""
    for name in ("MOSAIC_RUN_DIR", "MOSAIC_CHECKPOINT_DIR"):
        monkeypatch.delenv(name, raising=False)
    settings.keep(DreamerConfig.from_dict({**TINY, "logdir": str(tmp_path), "random_agent": True, "envs": 3}))
    return tmp_path


def asked(checkpoint, **keys):
    return DreamerConfig.from_dict({"run_id": "TEST", "checkpoint": str(checkpoint), **keys}).resolved()


@pytest.mark.parametrize(
    "place", [".", "checkpoints", "checkpoints/epoch-00000001", "checkpoints/epoch-00000001/a.npz"]
)
def test_settings_stored_with_a_checkpoint_need_not_be_repeated(kept, place):
    config = asked(kept / place)

    assert (config.env, config.env_options) == ("dummy_memory", {"length": 2})
    assert (config.size, config.random_agent, config.envs) == ("debug", True, 3)
    assert (config.batch_size, config.batch_length, config.train_ratio) == (2, 6, 2)


def test_given_settings_take_precedence_over_those_of_the_checkpoint(kept):
    config = asked(kept, env="dummy_grid", batch_length=7, steps=99)

    assert (config.env, config.batch_length, config.steps) == ("dummy_grid", 7, 99)
    assert config.batch_size == 2


def test_another_size_than_the_checkpoints_is_refused_with_both_named(kept):
    with pytest.raises(
        ConfigError, match=r"size: the checkpoint's agent was made with debug, not 12m\. Remove this setting"
    ):
        asked(kept, size="12m")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"size": "13m"}, "agent: There is no size '13m'. Sizes: debug, 1m"),
        ({"suite": "attari"}, "suite: there is no suite 'attari'. Choose from: atari"),
        ({"suite": "procgen"}, "suite: there is no adapter for procgen_coinrun"),
        ({"agent": {"optimizer": {"lrr": 1}}}, "agent: Optimizer has no lrr. It has: agc"),
        ({"replay_shares": {"unifrom": 1}}, "replay_shares: 'unifrom' is not valid. Choose from: uniform"),
        ({"replay_shares": {"uniform": 0}}, "replay_shares: at least one share must be above 0"),
        ({"outputs": ["wandb"]}, "outputs: 'wandb' is not valid. Choose from: jsonl"),
        ({"extras": {"mode": "policy_evil"}}, "extras.mode: must be one of train, resume_training, policy_eval"),
        ({"extras": {"mode": "policy_eval"}}, "policy_path is missing: mode policy_eval needs"),
    ],
)
def test_invalid_settings_are_refused_before_anything_starts(keys, words):
    with pytest.raises(ConfigError) as refused:
        DreamerConfig.from_dict({"run_id": "TEST", **keys}).resolved()

    assert words in str(refused.value)


def test_an_evaluation_is_requested_by_mode_and_policy_path(kept):
    keys = {"mode": "policy_eval", "policy_path": str(kept)}
    config = DreamerConfig.from_dict({"run_id": "TEST", "extras": keys}).resolved()

    assert (config.script, config.checkpoint, config.env) == ("eval", str(kept / "checkpoints"), "dummy_memory")


def test_under_mosaic_a_logdir_outside_the_runs_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("MOSAIC_RUN_DIR", str(tmp_path / "run"))

    with pytest.raises(ConfigError, match=r"logdir: .* is outside the run's folder"):
        DreamerConfig.from_dict({"run_id": "TEST", "logdir": str(tmp_path)}).resolved()


def test_a_run_prints_its_settings_and_its_folder_is_enough_to_play_it(run_of):
    run = run_of(script="train", steps=80)
    assert run.start().wait() == 0, run.stderr
    other = run_of(script="eval", checkpoint=str(run.folder), episodes=3)
    asked = {"script": "eval", "checkpoint": str(run.folder), "episodes": 3}
    other.config.write_text(json.dumps({"run_id": "OTHER", "logdir": str(other.folder), **asked}))
    output = run.stderr

    assert other.start().wait() == 0, other.stderr

    assert "dummy_grid: an agent that acts at random, 2 training and 1 evaluation envs, until step 80" in output
    assert "Done: 80 steps, " in output
    assert other.stderr.count("\n") == 2
    assert "dummy_grid: an agent that acts at random plays 3 episodes.\n3 episodes played: mean return " in other.stderr


def test_a_run_without_steps_left_names_the_setting_to_change(run_of):
    run = run_of(script="train", steps=80)
    assert run.start().wait() == 0, run.stderr

    assert run.start().wait() == 0, run.stderr

    assert "The run continues from a checkpoint at step 80" in run.stderr
    assert "No steps are left: the run ends at step 80. Increase steps, such as steps=160." in run.stderr


def test_progress_is_counted_in_env_steps_alone(run_of):
    run = run_of(script="train", steps=400, train_ratio=64)

    assert run.start().wait() == 0, run.stderr

    beats = [line["payload"]["progress"] for line in run.lines if line.get("event") == "heartbeat"]
    assert run.counters["updates"] > 400
    assert 0 <= beats[-1] <= 400
    counters = run.counters
    assert Progress(counters, DreamerConfig.from_dict(json.loads(run.config.read_text())))() == 400


@pytest.mark.parametrize("script", ["train", "parallel"])
def test_an_env_that_does_not_exist_is_named_in_one_sentence(run_of, script):
    run = run_of(script=script, env="dummy_gird")

    assert run.start().wait() != 0

    last = run.stderr.splitlines()[-1]
    assert "env: there is no environment dummy_gird. Did you mean dummy_grid" in last
    assert "Traceback" not in run.stderr


def test_a_dry_run_finds_what_is_wrong_with_the_env(run_of):
    run = run_of(env_options={"bogus": 1})

    assert run.start("--dry-run").wait() == 2

    assert "env: dummy_grid cannot be created: TypeError" in run.stderr
    assert "bogus" in run.stderr
