"""`mosaic run --on`, `show`, `machines` and `doctor` with a real Slurm."""

import itertools
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from lab import wait_until

from mosaic.client import TrainerClient
from mosaic.model.durable import read_json

MOSAIC = Path(sys.executable).parent / "mosaic"


@pytest.fixture
def mosaic(slurm_lab):
    def run(*words, code=0):
        env = {**os.environ, "MOSAIC_HOME": str(slurm_lab.root.path)}
        done = subprocess.run([MOSAIC, *words], capture_output=True, text=True, env=env, cwd=slurm_lab.root.path)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_run_says_where_it_ran(mosaic):
    name = f"afar-{uuid.uuid4().hex[:8]}"  # a repeated test meets the runs of its first try
    mosaic("run", "toy", "steps=5", "--on", "slurm:main", "--name", name)

    shown = mosaic("show", name)
    rows = {row["place"]: row for row in json.loads(mosaic("machines", "--json"))}

    place = next(line for line in shown.splitlines() if line.strip().startswith("ran on"))
    assert "slurm:main, node" in place
    assert ", job " in place
    assert rows["slurm:main,urgent"]["gpus"] == 2
    assert rows["local"]["our_runs"] == 0
    assert "nodeB" in mosaic("machines")


def test_machines_tells_whose_gpus_are_in_use_and_how_many_jobs_wait(slurm_lab, mosaic, cluster):
    run = slurm_lab.submit(steps=100_000, rate=20, on="slurm", gpus={"requested": 1}, limits={"grace_s": 2})
    node = slurm_lab.wait_until_run(run, lambda now: now.summary.steps > 0, "a step").node
    batch = ("sbatch", "--parsable", "-o", "/dev/null", "--gres=gpu:1", "--wrap", "sleep 600")
    others = [cluster.ask(*batch, "-w", node), cluster.ask(*batch, "--hold")]
    try:
        wait_until(lambda: cluster.jobs()[others[0]] == "RUNNING", 60, "a job of somebody else")
        rows = json.loads(mosaic("machines", "--json"))
        listed = mosaic("runs", "--where", f"on = slurm and node = {node} and state = live", "--columns", "gpus")
    finally:
        cluster.ask("scancel", *others)
        slurm_lab.client.cancel_run(run.run_id)
        slurm_lab.wait_until_over(run)

    [row] = [row for row in rows if row["node"] == node]
    assert [row[f"gpus{which}"] for which in ("", "_free", "_ours", "_others")] == [2, 0, 1, 1]
    assert [(row["waiting"], row["queued"]) for row in rows if row["place"] != "local"] == [(0, 1), (0, 0)]
    assert listed.splitlines()[1].split() == [run.run_id, "1"]


def test_a_grace_period_that_slurm_would_cut_is_told_at_submit(slurm_lab, mosaic):
    run = slurm_lab.submit(steps=3, on="slurm", limits={"grace_s": 30})

    assert "KillWait is 5 s" in slurm_lab.wait_until_over(run).history[0].reason


def test_a_default_place_is_used_by_runs_that_do_not_say_theirs(slurm_lab, mosaic):
    slurm_lab.stop_daemon()
    mosaic("daemon", "start", "--launcher", "slurm:main")
    slurm_lab.client = TrainerClient.connect(slurm_lab.root)
    try:
        far, here = slurm_lab.submit(steps=3), slurm_lab.submit(steps=3, on="local")
        places = [slurm_lab.wait_until_over(run).on for run in (far, here)]
    finally:
        slurm_lab.stop_daemon()
        mosaic("daemon", "start", "--launcher", "local")
        slurm_lab.client = TrainerClient.connect(slurm_lab.root)

    assert places == ["slurm:main", ""]


def test_doctor_finds_a_cluster_that_does_not_answer(slurm_lab, mosaic, tmp_path):
    file = slurm_lab.root.clusters / "other.toml"
    file.write_text(f'conf = "{tmp_path}/missing.conf"\n')
    try:
        found = json.loads(mosaic("doctor", "--json", code=1))
    finally:
        file.unlink()

    assert [finding["what"] for finding in found if "missing.conf" in finding["what"]] != []
    assert not [finding for finding in found if "Nodes cannot reach" in finding["what"]]


def test_an_experiment_on_a_cluster_has_at_most_as_many_runs_at_a_time_as_it_allows(slurm_lab, mosaic):
    mosaic(
        "run",
        "toy",
        "steps=3",
        "--seeds",
        "0-2",
        "--max-parallel",
        "1",
        "--on",
        "slurm",
        "--name",
        "one-by-one",
        "--yes",
    )

    found = [run for run in slurm_lab.client.list_runs().runs if run.experiment == "one-by-one"]
    folders = [slurm_lab.rundir(slurm_lab.wait_until_over(run)) for run in found]
    # Of the workers: a run whose processes are gone makes room before its last line is stored.
    spans = sorted((read_json(folder.started)["started_at"], folder.exit.stat().st_mtime) for folder in folders)

    assert len(spans) == 3
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(spans))


def test_an_unknown_cluster_is_refused_at_submit(mosaic):
    mosaic("run", "toy", "--on", "mars", "--detach", code=1)
