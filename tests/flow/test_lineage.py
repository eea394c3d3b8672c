"""Runs that start from other runs, with the real daemon and the toy worker: resume, evaluate, refer to checkpoints."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mosaic.cli.resume import next_steps
from mosaic.client.joined import joined_curve
from mosaic.model.errors import BadConfig, NoCheckpoint, RunIsLive, UnknownRun
from mosaic.model.states import RunState

MOSAIC = Path(sys.executable).with_name("mosaic")


@pytest.fixture(scope="module")
def lab(shared_lab):
    return shared_lab


@pytest.fixture
def mosaic(lab):
    def call(*words, code=0, cwd=None):
        env = {**os.environ, "MOSAIC_HOME": str(lab.root.path), "NO_COLOR": "1"}
        done = subprocess.run([MOSAIC, *map(str, words)], env=env, capture_output=True, text=True, timeout=90, cwd=cwd)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    return call


@pytest.fixture
def ended(lab):
    """Trains until the run is over and returns it."""
    return lambda **keys: lab.wait_until_over(lab.submit(**keys))


@pytest.fixture(scope="module")
def trained(lab):
    """A run that crashed at step 450 of 600, with checkpoints at each hundred and a best one at 400."""
    keys = {"steps": 600, "seed": 3, "checkpoint_every": 100, "eval_every": 200, "crash_at": 450}
    return lab.wait_until_over(lab.submit("crawler", **keys))


def derived(lab, run, relation, checkpoint="", evaluation=None, **config):
    metadata = {"parent_run_id": run.run_id, "relation": relation, "worker": {"config": config}}
    if checkpoint:
        metadata["checkpoint"] = checkpoint
    if evaluation:
        metadata["evaluation"] = evaluation
    return lab.client.submit_run({"metadata": metadata})


def rewards(lab, run):
    return {event["step_index"]: event["reward"] for event in lab.events(run, "step")}


def saved(run, step):
    return Path(run.run_dir) / "checkpoints" / f"checkpoint-{step:012d}.json"


def test_a_resumed_run_continues_at_the_checkpoint(lab, ended, trained):
    whole = ended(steps=600, seed=3, eval_every=200)

    run = lab.wait_until_over(derived(lab, trained, "resume", crash_at=None))

    assert run.state is RunState.TERMINATED
    assert rewards(lab, run) == {step: reward for step, reward in rewards(lab, whole).items() if step >= 400}


def test_parent_and_child_are_recorded_in_both_runs(lab, trained):
    run = derived(lab, trained, "resume", crash_at=None)

    child = lab.client.get_run(run.run_id)
    assert (child.parent_run_id, child.relation, child.name) == (trained.run_id, "resume", "crawler (resumed)")
    assert child.config["metadata"]["parent_checkpoint"] == {"path": str(saved(trained, 400)), "step": 400}
    assert run.run_id in lab.client.get_run(trained.run_id).children
    assert "checkpoint-000000000400.json (step 400)" in child.history[0].reason


def test_a_killed_run_is_resumed(lab, ended):
    killed = ended(steps=300, checkpoint_every=100, signal_at=250)

    run = lab.wait_until_over(derived(lab, killed, "resume", signal_at=None))

    assert (killed.state, run.state) == (RunState.FAULTED, RunState.TERMINATED)
    assert min(rewards(lab, run)) == 200


def test_a_damaged_checkpoint_is_skipped(lab, ended):
    crashed = ended(steps=300, checkpoint_every=100, crash_at=250)
    saved(crashed, 200).write_bytes(saved(crashed, 200).read_bytes()[:20])

    run = lab.wait_until_over(derived(lab, crashed, "resume", crash_at=None))

    assert min(rewards(lab, run)) == 100
    note = lab.client.get_run(run.run_id).history[0].reason
    assert "skipped: checkpoint-000000000200.json is not valid JSON" in note


def test_without_a_checkpoint_the_error_says_what_to_do(lab, ended):
    plain = ended(steps=20)

    with pytest.raises(NoCheckpoint, match=r"has saved no checkpoint. Train with checkpoint_every"):
        derived(lab, plain, "resume")
    with pytest.raises(NoCheckpoint, match=r"no best checkpoint. Train with eval_every"):
        derived(lab, plain, "eval", checkpoint="best")


def test_a_live_run_is_not_resumed_and_can_be_evaluated(lab):
    live = lab.submit(steps=100_000_000, rate=200, checkpoint_every=10)
    lab.wait_until_run(live, lambda now: now.summary.last_step > 30, "a checkpoint")

    with pytest.raises(RunIsLive, match="End it first"):
        derived(lab, live, "resume")
    evaluation = lab.wait_until_over(derived(lab, live, "eval"))

    lab.client.cancel_run(live.run_id)
    assert evaluation.state is RunState.TERMINATED


def test_a_finished_run_needs_more_steps(lab, ended):
    finished = ended(steps=200, checkpoint_every=100)

    with pytest.raises(BadConfig, match=r"at step 200 of 200: nothing is left to train.*steps=400"):
        derived(lab, finished, "resume")
    run = lab.wait_until_over(derived(lab, finished, "resume", total_timesteps=250))

    assert sorted(rewards(lab, run)) == list(range(200, 250))


def test_secrets_are_passed_on_unchanged(lab):
    worker = {
        "module": "toy_worker.cli",
        "environment": {"ACME_API_KEY": "very secret"},
        "config": {"steps": 20, "checkpoint_every": 5, "crash_at": 12},
    }
    crashed = lab.wait_until_over(lab.submit_worker(worker))

    run = derived(lab, crashed, "resume", crash_at=None)

    stored = json.loads(lab.root.config_file(run.run_id).read_text())
    assert stored["metadata"]["worker"]["environment"] == {"ACME_API_KEY": "very secret"}


def test_an_evaluation_plays_the_best_checkpoint_on_its_own_seeds(lab, ended):
    trained = ended(steps=400, seed=5, checkpoint_every=100, eval_every=100, forget_at=250)

    best, newest = (
        lab.wait_until_over(derived(lab, trained, "eval", checkpoint=which, evaluation={"episodes": 3}))
        for which in ("best", "")
    )

    assert (best.area, best.relation, best.parent_run_id) == ("evals", "eval", trained.run_id)
    found = [json.loads((Path(run.run_dir) / "eval_summary.json").read_text()) for run in (best, newest)]
    assert [summary["checkpoint_step"] for summary in found] == [200, 400]
    assert found[0]["mean_return"] > found[1]["mean_return"]
    assert found[0]["seeds"] == [1000000, 1000001, 1000002]
    output = [event["payload"] for event in lab.events(trained, "lifecycle") if event["event"] == "checkpoint_saved"]
    assert [payload["step"] for payload in output if payload.get("best")] == [100, 200]


def test_an_evaluation_is_neither_resumed_nor_evaluated(lab, trained):
    evaluation = lab.wait_until_over(derived(lab, trained, "eval"))

    for relation in ("resume", "eval"):
        with pytest.raises(BadConfig, match=f"is an evaluation of run {trained.run_id}"):
            derived(lab, evaluation, relation)


def test_a_script_cannot_be_resumed(lab, script):
    run = lab.wait_until_over(
        lab.submit_worker({"script": script("train.py", "#!/usr/bin/env python3\nprint('done')\n")})
    )

    with pytest.raises(BadConfig, match="is a script, which does not say how its runs are resumed"):
        derived(lab, run, "resume")


@pytest.mark.parametrize(
    ("reference", "step"), [("{id}", 400), ("{id}:best", 400), ("crawler", 400), ("crawler:best", 400)]
)
def test_a_checkpoint_setting_accepts_the_id_or_name_of_a_run(lab, trained, reference, step):
    run = lab.submit(steps=500, checkpoint=reference.format(id=trained.run_id))

    found = lab.client.get_run(run.run_id)
    metadata = found.config["metadata"]
    assert (found.parent_run_id, found.relation) == (trained.run_id, "resume")
    assert metadata["parent_checkpoint"]["step"] == step
    assert os.path.isabs(metadata["worker"]["config"]["checkpoint"])
    assert min(rewards(lab, lab.wait_until_over(run))) == step


def test_last_is_the_run_that_was_submitted_last(lab, ended):
    before = ended(steps=20, checkpoint_every=10)

    run = lab.submit(steps=30, checkpoint="last")

    assert lab.client.get_run(run.run_id).parent_run_id == before.run_id


def test_the_mode_decides_whether_it_is_an_evaluation(lab, trained):
    run = lab.submit(checkpoint=trained.run_id, extras={"mode": "policy_eval"})

    found = lab.client.get_run(run.run_id)
    assert (found.area, found.relation, found.parent_run_id) == ("evals", "eval", trained.run_id)


def test_a_path_in_a_runs_folder_has_that_run_as_its_parent(lab, trained):
    run = lab.submit(steps=500, checkpoint=str(saved(trained, 200)))

    found = lab.client.get_run(run.run_id)
    assert found.parent_run_id == trained.run_id
    assert found.config["metadata"]["parent_checkpoint"]["step"] == 200


def test_references_that_name_no_run_or_several_are_refused(lab, trained):
    with pytest.raises(BadConfig, match=r"config.checkpoint: 'nosuch' is neither an existing path nor a run"):
        lab.submit(checkpoint="nosuch")
    with pytest.raises(BadConfig, match=r"config.checkpoint: .*[Ss]everal runs"):
        lab.submit(checkpoint="01")
    with pytest.raises(UnknownRun, match="There is no run 'nosuch'"):
        lab.client.submit_run({"metadata": {"parent_run_id": "nosuch", "relation": "resume"}})


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"relation": "resume"}, "metadata.relation: needs a parent"),
        ({"parent_run_id": "PARENT", "relation": "cousin"}, "metadata.relation: must be one of resume, eval"),
        ({"parent_run_id": "PARENT"}, "metadata.relation: "),
    ],
)
def test_incomplete_lineage_is_refused(lab, trained, metadata, words):
    metadata = {name: value.replace("PARENT", trained.run_id) for name, value in metadata.items()}
    for worker in ({}, {"module": "toy_worker.cli"}):
        with pytest.raises(BadConfig, match=words):
            lab.client.submit_run({"metadata": {**metadata, "worker": worker}})


def test_a_joined_curve_has_every_step_once(lab, ended):
    first = ended(steps=300, checkpoint_every=100, crash_at=255)
    second = lab.wait_until_over(derived(lab, first, "resume", crash_at=280))
    third = lab.wait_until_over(derived(lab, second, "resume", crash_at=None, checkpoint=str(saved(first, 200))))

    curve = joined_curve(lab.client, third.run_id, "step/reward")

    assert curve.step == list(range(300))
    assert sum(joined_curve(lab.client, third.run_id, "step/reward", 30).count) == 300


def test_the_next_steps_of_a_run_are_commands(lab, ended, monkeypatch):
    monkeypatch.setenv("MOSAIC_HOME", str(lab.root.path))
    finished = ended(steps=200, checkpoint_every=100)

    assert next_steps(finished) == [f"mosaic eval {finished.run_id}", f"mosaic resume {finished.run_id} steps=400"]
    assert next_steps(ended(steps=20)) == []


# ---- on the command line


def test_resume_names_the_checkpoint_and_follows_the_run(mosaic, trained):
    output = mosaic("resume", trained.run_id, "--name", "second", "crash_at=null")

    assert "Continues checkpoints/checkpoint-000000000400.json (step 400) of run" in output
    assert "second" in output
    assert output.count("TERMINATED") == 1


def test_eval_ends_with_mean_interval_seeds_and_files(mosaic, trained):
    output = mosaic("eval", trained.run_id, "--best", "--episodes", "5", "--seed", "70")

    assert "Evaluates checkpoints/best/state.json (step 400)" in output
    assert "± " in output
    assert "(95 %) over 5 episodes, seeds 70…74" in output
    ending = output[output.index("TERMINATED") :]
    assert ending.count("mean return") == 1
    assert ending.count(str(trained.run_dir.rsplit("/", 2)[0])) == 1, "one path: the summary in the run's folder"
    assert "eval_summary.json" in ending


def test_eval_prints_its_result_as_json(mosaic, trained):
    found = json.loads(mosaic("eval", trained.run_id, "--json", "eval_episodes=4"))

    assert found["relation"] == "eval"
    assert found["evaluation"]["episodes"] == 4
    assert len(found["evaluation"]["returns"]) == len(found["evaluation"]["seeds"]) == 4


def test_invalid_arguments_of_eval_are_refused(mosaic, trained):
    assert "has no setting for video recording" in mosaic("eval", trained.run_id, "--video", code=1)
    assert "is not an option of" in mosaic("eval", trained.run_id, "--bset", code=2)
    assert "cannot be used together" in mosaic("eval", trained.run_id, "--best", "--checkpoint", "x", code=2)
    assert "does not exist" in mosaic("eval", trained.run_id, "--checkpoint", "x", code=1)


def test_a_relative_path_takes_precedence_over_the_name_of_a_run(mosaic, trained, tmp_path):
    shutil.copy(saved(trained, 300), tmp_path / "crawler")

    run = json.loads(mosaic("run", "toy", "--detach", "--json", "steps=400", "checkpoint=crawler", cwd=tmp_path))

    assert run["parent_run_id"] == ""
    shown = json.loads(mosaic("show", run["run_id"], "--json"))
    assert shown["config"]["metadata"]["worker"]["config"]["checkpoint"] == str(tmp_path / "crawler")


def test_a_joined_curve_includes_the_ancestors(mosaic, lab, trained):
    child = lab.wait_until_over(derived(lab, trained, "resume", crash_at=None))

    points = json.loads(mosaic("curve", child.run_id, "step/reward", "--joined", "--json"))

    assert sum(point["count"] for point in points) == 600
