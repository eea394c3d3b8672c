"""--script train and --script eval: one process that plays, learns, saves, goes on, and shows what it can."""

import importlib.util
import json

import numpy as np
import pytest
from dreamer_worker.checkpoint import Epochs, read_arrays
from dreamer_worker.config import DreamerConfig
from dreamer_worker.evaluate import Policy
from dreamer_worker.parallel import prepare, resume
from dreamer_worker.telemetry import Telemetry
from dreamer_worker.train import Training

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


@pytest.fixture
def training_in(monkeypatch):
    """Makes trainings as the worker would; one in the same folder goes on with the one before."""
    for name in ("MOSAIC_RUN_DIR", "MOSAIC_CHECKPOINT_DIR"):
        monkeypatch.delenv(name, raising=False)
    made = []

    def make(folder, **changes):
        config = prepare(DreamerConfig.from_dict({**TINY, "logdir": str(folder), **changes}))
        resume(config)
        made.append(Training(config, Telemetry(run_id="TEST")))
        return made[-1]

    yield make
    for training in made:
        training.close()


def ask_for(run, **changes):
    run.config.write_text(json.dumps({**json.loads(run.config.read_text()), **changes}))


def same(one, other):
    assert one.keys() == other.keys()
    return [key for key in one if not np.array_equal(one[key], other[key])] == []


@pytest.fixture
def quickly_compiled():
    """Compiling takes longer than the few updates; without optimisations it is shorter."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@needs_jax
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_resumed_training_has_every_weight_to_the_last_bit_and_learns_on(quickly_compiled, training_in, tmp_path):
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
def test_a_policy_goes_on_from_what_was_done_not_from_what_it_chose(quickly_compiled, training_in, tmp_path):
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


def test_evaluation_envs_play_along_with_their_best_and_feed_the_eval_buffer(training_in, tmp_path):
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


def test_a_report_is_made_of_training_and_of_evaluation(training_in, tmp_path):
    training = training_in(tmp_path, random_agent=True, steps=80)
    training.report()  # there is nothing yet

    training.run()
    training.report()

    told = training.logger._averages.take()
    assert {"report/loss/total", "eval/loss/total"} <= told.keys()


@needs_jax
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_training_that_is_stopped_saves_and_goes_on_and_is_evaluated(run_of, monkeypatch):
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # it is compiled four times
    real = {"random_agent": False, "script": "train", "size": "debug", "save_every_s": 1000, "report_every_s": 1000}
    run = run_of(**real, steps=10_000_000).start()
    run.until(lambda: (run.folder / "counters.bin").exists() and run.counters["updates"] > 3)
    assert run.terminate().wait() == 143, run.words
    stopped = run.counters.to_dict()

    epochs = Epochs(run.folder / "checkpoints")
    newest = epochs.newest()
    assert epochs.read(newest)["counters"] == stopped
    learned = read_arrays(epochs.path(newest) / "agent.npz")
    assert int(learned["moments/updates"]) == stopped["updates"]

    # With no step left to play it saves what it was given.
    played = stopped["env_steps"]
    ask_for(run, steps=played)
    assert run.start().wait() == 0, run.words
    assert epochs.newest() == newest + 1
    assert same(read_arrays(epochs.path(newest + 1) / "agent.npz"), learned)

    ask_for(run, steps=played + 40)
    assert run.start().wait() == 0, run.words
    assert run.counters["env_steps"] == played + 40
    assert run.counters["updates"] > stopped["updates"]

    assert run.start("--script", "eval").wait() == 0, run.words
    summary = json.loads((run.folder / "eval_summary.json").read_text())
    assert (summary["episodes"], summary["checkpoint_epoch"]) == (10, newest + 2)
    assert run.counters["env_steps"] == played + 40  # evaluation is no training
