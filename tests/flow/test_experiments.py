"""Experiments with the real daemon: many runs in one call, what is missing, limits, and the verbs."""

import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from terminal import Terminal

from mosaic.client import TrainerClient
from mosaic.model.errors import (
    BadConfig,
    ExperimentDiffers,
    ExperimentHasRuns,
    KeyTaken,
    MosaicError,
    UnknownExperiment,
)
from mosaic.model.states import RunState

MOSAIC = Path(sys.executable).with_name("mosaic")
GRID = {"worker": "toy", "base": {"steps": 20}, "axes": {"agents": [1, 2]}, "seeds": [0, 1]}


@pytest.fixture(scope="module")
def lab(shared_lab):
    return shared_lab


@pytest.fixture
def mosaic(lab, tmp_path):
    def run(*words, code=0):
        env = {**os.environ, "MOSAIC_HOME": str(lab.root.path)}
        done = subprocess.run([MOSAIC, *map(str, words)], capture_output=True, text=True, env=env, cwd=tmp_path)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    return run


def config(**settings):
    return {"metadata": {"worker": {"module": "toy_worker.cli", "config": settings}}}


def wait_for_all(lab, name):
    return [lab.wait_until_over(run) for run in lab.client.list_runs(experiment=name).runs]


def traces(lab):
    """What exists of runs and experiments, on the disk and in the registry."""
    folders = {path.name for area in ("runs", "control", "configs") for path in (lab.root.trainer / area).iterdir()}
    return folders, lab.client.list_runs().total, [each.name for each in lab.client.experiments()]


def test_one_bad_config_among_many_leaves_nothing_half_made(lab):
    before = traces(lab)

    with pytest.raises(BadConfig, match="agents: must be at least 1, not 0"):
        lab.client.submit_runs([config(steps=1), config(steps=1, agents=0)], experiment="bad", document=GRID)
    with pytest.raises(BadConfig, match=r"agnts: the worker has no such setting\. Did you mean 'agents'"):
        lab.client.run_experiment("bad", {**GRID, "axes": {"agnts": [1]}})

    assert traces(lab) == before


def test_an_experiment_runs_its_grid_and_again_only_what_is_missing(lab):
    first = lab.client.run_experiment("grid", GRID)
    again = lab.client.run_experiment("grid", {**GRID, "seeds": [1, 2]})

    assert [run.axes for run in first.runs] == [
        {"agents": agents, "seed": seed} for agents in (1, 2) for seed in (0, 1)
    ]
    assert len(first.added) == 4
    assert [dict(point) for point in again.missing] == [{"agents": agents, "seed": 2} for agents in (1, 2)]
    assert [run.run_id in again.added for run in again.runs] == [False, True] * 2
    ended = wait_for_all(lab, "grid")
    assert {run.state for run in ended} == {RunState.TERMINATED}
    assert {(run.experiment, run.seed, run.axes["seed"] == run.seed) for run in ended} == {
        ("grid", seed, True) for seed in (0, 1, 2)
    }
    assert lab.client.experiment("grid").document["seeds"] == [0, 1, 2]
    with pytest.raises(ExperimentDiffers, match="its steps is 20, not 30"):
        lab.client.run_experiment("grid", {**GRID, "base": {"steps": 30}})
    with pytest.raises(ExperimentHasRuns):
        lab.client.delete_experiment("grid")


def test_a_file_with_fewer_seeds_says_that_the_other_runs_stay(lab, mosaic, tmp_path):
    text = "worker: toy\nbase: {steps: 1}\naxes: {agents: [1, 2]}\nseeds: 0-1\n"
    (tmp_path / "fewer.yaml").write_text(text)
    mosaic("experiment", "run", "fewer.yaml")
    (tmp_path / "fewer.yaml").write_text(text.replace("0-1", "0").replace("[1, 2]", "[2, 3]"))

    told = mosaic("experiment", "run", "fewer.yaml", "--detach")
    (tmp_path / "fewer.yaml").write_text(text.replace("agents: [1, 2]", "rate: [0]"))
    refused = mosaic("experiment", "run", "fewer.yaml", "--detach", code=1)

    assert "1 run added, 1 existed already" in told
    assert "It also has 3 runs with values or seeds not listed here; they stay." in told
    assert "it varies agents, and now rate would vary. Choose another name (--name, or name: in the file)" in refused
    assert {run.state for run in wait_for_all(lab, "fewer")} == {RunState.TERMINATED}
    assert lab.client.list_runs(experiment="fewer").total == 5


def test_two_who_submit_the_same_experiment_at_once_share_its_runs(lab):
    document = {"worker": "toy", "base": {"steps": 1}, "seeds": list(range(20))}

    with TrainerClient.connect(lab.root) as other, ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda client: client.run_experiment("shared", document), (lab.client, other)))

    ids = [run_id for begun in both for run_id in begun.added]
    assert len(ids) == len(set(ids)) == lab.client.list_runs(experiment="shared").total == 20
    assert [run.run_id for run in both[0].runs] == [run.run_id for run in both[1].runs]
    for run in lab.client.list_runs(experiment="shared").runs:
        lab.client.cancel_run(run.run_id)


def test_an_experiment_whose_record_is_lost_takes_only_runs_with_its_settings(lab):
    document = {"worker": "toy", "base": {"steps": 2}, "seeds": [0]}
    lab.client.run_experiment("norow", document)
    with closing(sqlite3.connect(lab.root.registry, timeout=30)) as db:
        db.execute("DELETE FROM experiments WHERE name = 'norow'")
        db.commit()

    with pytest.raises(ExperimentDiffers, match="its steps is 2, not 3"):
        lab.client.run_experiment("norow", {**document, "base": {"steps": 3}, "seeds": [0, 1]})
    with pytest.raises(ExperimentDiffers, match="it varies no setting, and now agents would vary"):
        lab.client.run_experiment("norow", {**document, "axes": {"agents": [1, 2]}})
    again = lab.client.run_experiment("norow", {**document, "seeds": [0, 1]})

    assert len(again.added) == 1
    assert not lab.client.experiment("norow").is_reconstructed
    assert lab.client.experiment("norow").document["base"] == {"steps": 2}


def test_two_calls_with_the_same_keys_are_the_same_runs(lab):
    configs, keys = [config(steps=1), config(steps=2)], ["one", "two"]

    first = lab.client.submit_runs(configs, keys)
    second = lab.client.submit_runs([*configs, config(steps=3)], [*keys, "three"])

    assert [run.run_id for run in second[:2]] == [run.run_id for run in first]
    with pytest.raises(KeyTaken):
        lab.client.submit_runs([config(steps=4), config(steps=9)], ["four", "one"])
    with pytest.raises(BadConfig, match="'five' is given twice"):
        lab.client.submit_runs([config(steps=5), config(steps=5)], ["five", "five"])


def test_at_most_as_many_runs_start_as_the_experiment_allows(lab):
    document = {"worker": "toy", "base": {"steps": 100_000, "rate": 50}, "seeds": [0, 1], "max_parallel": 1}
    first, second = lab.client.run_experiment("limited", document).runs
    lab.wait_for(first, RunState.EXECUTING)

    waits = lab.wait_until_run(second, lambda run: "at most 1" in run.waiting_for, "its turn")
    lab.client.put_experiment("limited", {**document, "max_parallel": 0})
    lab.wait_until_run(second, lambda run: "at most 1" not in run.waiting_for, "no limit")

    assert waits.waiting == "waiting for another run of the experiment limited (at most 1 at a time)"
    for run in (second, first):
        lab.client.cancel_run(run.run_id)
    wait_for_all(lab, "limited")


def test_failures_are_named_retried_resumed_and_deleted(lab, mosaic, tmp_path):
    (tmp_path / "crash.yaml").write_text(
        "worker: toy\nbase: {steps: 50, checkpoint_every: 10}\naxes: {crash_at: [30, 1000000]}\nseeds: 0-1\n"
    )

    planned = json.loads(mosaic("experiment", "run", "crash.yaml", "--dry-run", "--json"))
    ended = mosaic("experiment", "run", "crash.yaml", code=1)
    nothing = mosaic("experiment", "run", "crash.yaml", "--detach")
    retried = mosaic("experiment", "run", "crash.yaml", "--retry-faulted", "--detach")
    wait_for_all(lab, "crash")
    resumed = json.loads(mosaic("experiment", "resume", "crash", "--json"))
    wait_for_all(lab, "crash")
    shown = mosaic("experiment", "show", "crash")
    facts = json.loads(mosaic("experiment", "show", "crash", "--json"))

    assert len(planned["would_add"]) == 4
    assert "4 runs: 2 done, 2 FAULTED" in ended
    assert "asked to crash at step 30" in ended
    assert "nothing to add, 4 existed already" in nothing
    assert "Of these, 2 FAULTED. To continue them: mosaic experiment resume crash" in nothing
    assert "2 runs added, 2 existed already" in retried
    assert [row["is_resumed"] for row in resumed["runs"]] == [True, True]
    assert "4 earlier runs not shown" in shown
    assert "FAULTED  crash_at=30 seed=1" in shown
    assert facts["runs"] == 8
    assert [group["settings"] for group in facts["groups"]] == [{"crash_at": 30}, {"crash_at": 1000000}]
    assert [len(group["runs"]) for group in facts["groups"]] == [2, 2]
    assert "Add --yes" in mosaic("experiment", "rm", "crash", code=1)
    mosaic("experiment", "rm", "crash", "--yes")
    with pytest.raises(UnknownExperiment):
        lab.client.experiment("crash")


def test_runs_that_name_an_experiment_are_listed_without_a_record_of_it(lab):
    document = config(steps=1)
    document["metadata"]["experiment"] = {"name": "loose", "axes": {"steps": 1}}

    lab.wait_until_over(lab.client.submit_run(document))

    assert "loose" in [each.name for each in lab.client.experiments() if each.is_reconstructed]


def crashed_without_a_record(lab, name):
    """The run of an experiment that only this run names; its config has a secret."""
    document = config(steps=2, crash_at=1)
    document["metadata"]["experiment"] = {"name": name, "axes": {"steps": 2}}
    document["metadata"]["worker"]["environment"] = {"HUB_TOKEN": "real"}
    return lab.wait_until_over(lab.client.submit_run(document))


def test_a_run_whose_experiment_was_lost_starts_again_with_its_secrets(lab):
    run = crashed_without_a_record(lab, "lost")

    again = lab.client.resume_experiment("lost", [run])[0]

    assert not again.is_resumed
    written = json.loads(lab.root.config_file(again.after.run_id).read_text())
    assert written["metadata"]["worker"]["environment"] == {"HUB_TOKEN": "real"}


def test_from_another_machine_a_config_without_its_secrets_is_not_started(lab, monkeypatch):
    run = crashed_without_a_record(lab, "far")
    monkeypatch.setattr(lab.client._inner, "_root", None)

    with pytest.raises(MosaicError, match=r"sent without metadata\.worker\.environment\.HUB_TOKEN"):
        lab.client.resume_experiment("far", [run])

    assert len(lab.client.list_runs(experiment="far").runs) == 1


def test_a_run_without_its_config_and_its_experiment_is_not_started(lab):
    run = crashed_without_a_record(lab, "bare")
    lab.root.config_file(run.run_id).unlink()

    with pytest.raises(MosaicError, match="so is its config file"):
        lab.client.resume_experiment("bare", [run])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "toy", "--sweep", "agnts=1,2"), "agnts: the worker has no such setting. Did you mean 'agents'?"),
        (("run", "toy", "--seeds", "0-2000"), "These are 2,001 runs. Add --yes"),
        (("run", "toy", "seed=1", "--seeds", "0-2"), "seed: varies in this experiment"),
        (("run", "--seeds", "1", "python", "x.py"), "--seeds and --sweep need a worker"),
        (("run", "toy", "--max-parallel", "2"), "--max-parallel needs several runs"),
        (("experiment", "show", "no-such"), "There is no experiment 'no-such'"),
        (("experiment", "run", "no.yaml"), "Cannot read no.yaml: No such file"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_made(lab, mosaic, words, said):
    before = traces(lab)

    with pytest.raises(AssertionError) as found:
        mosaic(*words)

    assert said in str(found.value)
    assert "Traceback" not in str(found.value)
    assert traces(lab) == before


def test_a_sweep_without_a_name_gets_the_next_free_one(lab, mosaic):
    first = json.loads(mosaic("run", "toy", "steps=1", "--seeds", "0-1", "--detach", "--json"))
    second = mosaic("run", "toy", "steps=1", "--seeds", "0-1")

    assert (first["experiment"], len(first["runs"])) == ("toy-1", 2)
    assert "Experiment toy-2: 2 runs added" in second
    assert "2 runs: 2 done" in second


def test_watch_folds_an_experiment_into_one_line_and_lists_it_on_enter(lab):
    lab.client.run_experiment("folded", {"worker": "toy", "base": {"steps": 1}, "seeds": [0, 1]})
    wait_for_all(lab, "folded")
    terminal = Terminal([MOSAIC, "watch"], {"MOSAIC_HOME": str(lab.root.path)}, columns=140, rows=40)
    try:
        terminal.waits_for("? help")
        terminal.types("/folded\r")
        terminal.waits_for("▸ folded  2 runs: 2 done")
        assert "seed=0" not in terminal.waits_for("? help").rpartition("▸ folded")[2]
        terminal.types("\r")
        terminal.waits_for("folded seed=0")
        terminal.types("q")
        assert terminal.ends()[0] == 0
    finally:
        terminal.close()
