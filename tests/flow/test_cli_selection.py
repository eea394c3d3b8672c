"""`mosaic cancel` and `mosaic rm` of many runs at once, against the real daemon."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.model.states import RunState

MOSAIC = Path(sys.executable).with_name("mosaic")


@pytest.fixture
def mosaic(lab):
    env = {**os.environ, "MOSAIC_HOME": str(lab.root.path), "NO_COLOR": "1"}

    def call(*words, code=0, answer=None):
        """`answer`: what a user at a terminal types."""
        ours, theirs = pty.openpty() if answer else (None, None)
        if answer:
            os.write(ours, f"{answer}\n".encode())
        done = subprocess.run(
            [MOSAIC, *words], env=env, stdin=theirs or subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        for end in (ours, theirs) if answer else ():
            os.close(end)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    return call


def submit(lab, name, *tags, **config):
    worker = {"module": "toy_worker.cli", "config": config}
    return lab.client.submit_run({"metadata": {"worker": worker, "run_name": name, "tags": list(tags)}})


@pytest.fixture
def live(lab):
    """Three runs that run until they are cancelled."""
    tags = {"a": ["red"], "b": ["red", "blue"], "c": []}
    return {name: submit(lab, name, *tags[name], steps=10_000_000, rate=10) for name in tags}


@pytest.fixture
def over(lab):
    """Three runs that are over: two of them FAULTED, one TERMINATED with a checkpoint."""
    runs = {name: submit(lab, name, "old", steps=5, crash_at=2) for name in ("bad", "worse")}
    runs["good"] = submit(lab, "good", "old", "keep", steps=5)
    for run in runs.values():
        lab.wait_until_over(run)
    (lab.rundir(runs["good"]).checkpoints / "policy.pt").write_bytes(b"x" * 100_000)
    return runs


def states(lab):
    return {run.name: run.state for run in lab.client.list_runs().runs}


def test_cancel_by_tag_cancels_only_runs_with_that_tag(lab, mosaic, live):
    planned = mosaic("cancel", "--tag", "red", "--worker", "toy", "--dry-run")
    output = mosaic("cancel", "--tag", "red", "--worker", "toy", "--wait")

    for name in ("a", "b"):
        assert f"would cancel  {live[name].run_id}  {name}" in planned
        assert f"Run {live[name].run_id} ({name}) is CANCELLED." in output
    assert states(lab).pop("c") in (RunState.INIT, RunState.HANDSHAKE, RunState.READY, RunState.EXECUTING)


def test_tags_state_and_worker_must_all_match(lab, mosaic, live):
    lab.wait_for(live["b"], RunState.EXECUTING)

    planned = mosaic("cancel", "--tag", "red", "--tag", "blue", "--state", "EXECUTING", "--dry-run")

    assert live["b"].run_id in planned
    assert "1 run. Nothing was cancelled." in planned


def test_cancel_all_asks_the_user_and_accepts_a_no(lab, mosaic, live):
    refused = mosaic("cancel", "--all", answer="n", code=1)

    assert "Cancel these 3 runs?" in refused
    assert "Nothing was cancelled" in refused
    assert not any(run.cancel_requested for run in lab.client.list_runs().runs)

    mosaic("cancel", "--all", "--wait", answer="y")

    assert set(states(lab).values()) == {RunState.CANCELLED}
    assert "No live run matches." in mosaic("cancel", "--all")


def test_rm_by_state_and_age_deletes_what_it_lists_and_nothing_else(lab, mosaic, over, live):
    young = mosaic("rm", "--state", "FAULTED", "--older-than", "7d", "--dry-run")
    planned = mosaic("rm", "--state", "faulted", "--tag", "old", "--older-than", "0s", "--dry-run")
    output = mosaic("rm", "--state", "faulted", "--tag", "old", "--older-than", "0s", "--yes")

    assert "No run that is over matches." in young
    assert "2 runs" in planned
    for name in ("bad", "worse"):
        assert over[name].run_id in planned
        assert f"Deleted {over[name].run_id} ({name})" in output
        assert not Path(over[name].run_dir).exists()
    assert "Deleted 2 runs: " in output.splitlines()[-1]
    assert set(states(lab)) == {"good", "a", "b", "c"}


def test_rm_of_many_runs_never_deletes_a_live_run(lab, mosaic, over, live):
    output = mosaic("rm", "--worker", "toy", "--yes")

    assert "Deleted 3 runs: " in output
    assert set(states(lab)) == set(live)


def test_rm_lists_which_runs_have_checkpoints_and_asks(lab, mosaic, over):
    planned = mosaic("rm", "--tag", "keep", "--dry-run")
    refused = mosaic("rm", "--tag", "keep", code=1)
    mosaic("rm", "--tag", "keep", answer="y")

    assert ", with checkpoints" in planned
    assert "Add --yes" in refused
    assert set(states(lab)) == {"bad", "worse"}


def test_rm_deletes_nothing_if_one_of_the_runs_is_live(lab, mosaic, over, live):
    output = mosaic("rm", "good", "a", "--yes", code=1)

    assert "End it first" in output
    assert "good" in states(lab)


def test_an_invalid_selection_is_refused(lab, mosaic, over):
    refusals = [
        ("cancel", 2, "name a run, or select runs with options"),
        ("rm", 2, "name a run, or select runs with options"),
        ("cancel good --all", 2, "not both"),
        ("rm good --tag old", 2, "not both"),
        ("cancel --state over", 2, "--state TERMINATED,FAULTED,CANCELLED"),
        ("rm --state live --yes", 2, "--state INIT,HANDSHAKE,READY,EXECUTING"),
        ("cancel --worker toi", 1, "No run used the worker 'toi'. Did you mean 'toy'?"),
        ("rm --tag odl --yes", 1, "No run has the tag 'odl'. Did you mean 'old'?"),
    ]

    for words, code, output in refusals:
        assert output in mosaic(*words.split(), code=code)

    assert len(lab.client.list_runs().runs) == 3


def test_a_run_named_twice_is_deleted_once(lab, mosaic, over):
    assert json.loads(mosaic("show", "last", "--json"))["name"] == "good"

    mosaic("rm", "last", "good", over["good"].run_id[:20], "--yes")

    assert set(states(lab)) == {"bad", "worse"}


def test_gc_deletes_old_checkpoints_only_with_their_own_option(lab, mosaic, over):
    checkpoints = lab.rundir(over["good"]).checkpoints
    for step in (10, 20, 30):
        (checkpoints / f"checkpoint-{step:012}.pt").write_bytes(b"x" * 5000)
    before = sorted(path.name for path in checkpoints.iterdir())

    plain = mosaic("gc", "--older-than", "0s", "--yes")
    planned = mosaic("gc", "--old-checkpoints")

    assert "ago: it has checkpoints" in plain
    assert f"run {over['good'].run_id} (good): checkpoint-000000000010.pt, checkpoint-000000000020.pt" in planned
    assert sorted(path.name for path in checkpoints.iterdir()) == before

    assert "Nothing to delete" in mosaic("gc", "--old-checkpoints", "--state", "FAULTED", "--yes")
    mosaic("gc", "--old-checkpoints", "--yes")

    assert sorted(path.name for path in checkpoints.iterdir()) == ["checkpoint-000000000030.pt", "policy.pt"]


def test_du_lists_runs_environments_and_caches(lab, mosaic, over):
    (lab.root.envs / ".new-1").mkdir()

    output = json.loads(mosaic("du", "--json"))

    assert {each["run_id"] for each in output if each["kind"] == "run"} == {run.run_id for run in over.values()}
    assert {"unfinished", "own files", "cache"} <= {each["kind"] for each in output}
    assert "mosaic doctor --fix" in mosaic("du")
