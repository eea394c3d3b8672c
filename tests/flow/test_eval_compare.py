"""`mosaic eval compare` and the listing of evaluations, with the real daemon: results come from stored episodes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.cli.eval_compare import comparison
from mosaic.cli.eval_results import results_of
from mosaic.cli.eval_table import render
from mosaic.model.errors import MosaicError, UnknownRun

EVALUATION = """#!/usr/bin/env python3
import json
for operator, returns in json.loads({text!r}).items():
    for seed, value in returns.items():
        line = {{"event_type": "episode", "episode_index": int(seed), "total_reward": value, "steps": 10}}
        line.update(agent_id=operator, operator=operator, lane=operator, episode_seed=int(seed), duration_s=0.5)
        print(json.dumps(line), flush=True)
"""


@pytest.fixture(scope="module")
def lab(shared_lab):
    return shared_lab


@pytest.fixture(scope="module")
def evaluate(lab, tmp_path_factory):
    """Runs a script that reports these episodes, {operator: {seed: return}}, as an evaluation."""

    def run(name, returns, **config):
        script = tmp_path_factory.mktemp("script") / "evaluate.py"
        script.write_text(EVALUATION.format(text=json.dumps(returns)))
        script.chmod(0o755)
        worker = {"script": str(script), "config": {"test_mode": True, **config}}
        return lab.wait_until_over(lab.submit_worker(worker, name))

    return run


@pytest.fixture
def mosaic_here(lab):
    def call(*words):
        env = {**os.environ, "MOSAIC_HOME": str(lab.root.path), "NO_COLOR": "1"}
        command = [Path(sys.executable).with_name("mosaic"), *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=90, check=True).stdout

    return call


@pytest.fixture(scope="module")
def both(evaluate):
    """An evaluation of two operators."""
    returns = {"ppo": dict.fromkeys(range(12), 1.0), "chance": {seed: 0.5 * (seed % 2) for seed in range(12)}}
    return evaluate("both", returns)


@pytest.fixture(scope="module")
def other(evaluate):
    """An evaluation of one operator, on seeds 6 … 17."""
    return evaluate("other", {"ppo": dict.fromkeys(range(6, 18), 2.0)})


@pytest.fixture(scope="module")
def toys(lab):
    """Two evaluations of a toy policy: an early checkpoint and a late one, on the same seeds."""
    trained = lab.wait_until_over(lab.submit("walker", steps=400, checkpoint_every=100))

    def evaluate(checkpoint, name):
        path = f"{trained.run_dir}/checkpoints/{checkpoint}"
        metadata = {"parent_run_id": trained.run_id, "relation": "eval", "checkpoint": path, "run_name": name}
        return lab.client.submit_run({"metadata": {**metadata, "evaluation": {"episodes": 12}}})

    runs = [evaluate("checkpoint-000000000100.json", "early"), evaluate("checkpoint-000000000400.json", "late")]
    return trained, [lab.wait_until_over(run) for run in runs]


def test_the_operators_of_one_evaluation_are_compared(lab, both):
    found = comparison(lab.client, ["both"])

    [pair] = found["comparisons"]
    assert (pair["a"], pair["b"], pair["n"], pair["difference"]) == ("ppo", "chance", 12, 0.75)
    assert found["operators"]["ppo"]["steps_per_s"] == 20.0
    assert found["runs"] == [{"run_id": both.run_id, "name": "both", "env_id": ""}]


def test_two_evaluations_are_compared_on_their_common_seeds(lab, both, other):
    found = comparison(lab.client, ["both", "other"])

    assert list(found["operators"]) == ["both:ppo", "both:chance", "other"]
    pairs = {(pair["a"], pair["b"]): (pair["n"], pair["difference"]) for pair in found["comparisons"]}
    assert pairs[("both:ppo", "other")] == (6, -1.0)
    assert "Not all have played all 18 seeds" in found["warnings"][0]


def test_one_operator_of_a_run_can_be_chosen(lab, both, other):
    found = comparison(lab.client, ["both:chance", "other"])

    assert list(found["operators"]) == ["both:chance", "other"]


def test_evaluations_of_single_policies_are_compared_too(lab, toys):
    found = comparison(lab.client, ["late", "early"])

    [pair] = found["comparisons"]
    assert (pair["a"], pair["b"], pair["n"], pair["wins"], pair["clear"]) == ("late", "early", 12, 12, True)
    assert render(found).count("late beats early by ") == 1


def test_what_cannot_be_compared_is_refused_in_words(lab, toys, both, other, evaluate):
    evaluate("far", {"ppo": dict.fromkeys(range(100, 110), 1.0)})
    evaluate("pole", {"ppo": {1: 1.0}}, env_id="CartPole-v1")
    evaluate("car", {"ppo": {1: 1.0}}, env_id="MountainCar-v0")

    def refused(*references):
        with pytest.raises(MosaicError) as caught:
            comparison(lab.client, list(references))
        return str(caught.value)

    assert "Run walker is a training, not an evaluation" in refused("walker", "both")
    assert "only one operator in the comparison: ppo" in refused("other")
    assert "Run both has no operator 'pp'. Did you mean 'ppo'?" in refused("both:pp", "other")
    assert "other and far have no seed in common" in refused("other", "far")
    assert "different environments" in refused("pole", "car")
    assert "CartPole-v1 (pole), MountainCar-v0 (car)" in refused("pole", "car")
    with pytest.raises(UnknownRun):
        comparison(lab.client, ["nothing:ppo", "both"])


def test_show_has_the_table_and_listings_claim_no_common_mean(lab, mosaic_here, both):
    shown = mosaic_here("show", "both")

    assert "24 episodes without a common mean" in shown
    assert "ppo beats chance by 0.75" in shown
    assert "(24)" in mosaic_here("runs")


def test_the_result_of_a_run_needs_only_its_stored_episodes(lab, both):
    (lab.rundir(both).path / "eval_summary.json").unlink(missing_ok=True)

    assert "ppo             12  1 [1, 1]" in render(results_of(lab.client, both, is_remote=True))


def test_a_summary_file_adds_kinds_ledger_and_warnings(lab, both):
    facts = {"operators": {"ppo": {"kind": "rl"}, "chance": 3}, "warnings": ["beware"], "ledger": {"ppo": []}}
    path = lab.rundir(both).path / "eval_summary.json"
    path.write_text(json.dumps(facts))

    found = results_of(lab.client, both)

    path.unlink()
    assert found["operators"]["ppo"]["kind"] == "rl"
    assert found["warnings"][0] == "beware"
    assert found["ledger"] == {}
