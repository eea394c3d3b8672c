"""Runs on a real Slurm: the same states, rows and reasons as on this machine."""

import pytest
from lab import wait_until

from mosaic.model.durable import read_json
from mosaic.model.states import RunState

GRACE = {"grace_s": 2}  # shorter than the cluster's KillWait


def test_a_run_on_slurm_ends_with_every_line_stored(slurm_lab):
    run = slurm_lab.submit(steps=200, on="slurm", limits=GRACE)

    over = slurm_lab.wait_until_over(run)

    assert (over.state, over.reason) == (RunState.TERMINATED, "")
    assert [event["step_index"] for event in slurm_lab.events(run, "step")] == list(range(200))
    assert over.node in ("nodeA", "nodeB")
    assert [move.new for move in over.history] == [
        RunState.INIT,
        RunState.HANDSHAKE,
        RunState.READY,
        RunState.EXECUTING,
        RunState.TERMINATED,
    ]
    started = read_json(slurm_lab.rundir(run).started)
    assert (started["node"], started["job"]) == (over.node, over.job)


def wait_for_steps(lab, run, count=1):
    lab.wait_until_run(run, lambda now: now.summary.steps >= count, f"{count} steps")


def test_a_run_for_which_slurm_has_no_room_waits_in_init_and_says_so(slurm_lab, cluster):
    cluster.ask("scontrol", "update", "NodeName=nodeA,nodeB", "State=DRAIN", "Reason=test")
    try:
        run = slurm_lab.submit(steps=3, on="slurm", limits=GRACE)
        waiting = slurm_lab.wait_until_run(run, lambda now: "Slurm: " in now.waiting_for, "a reason")
    finally:
        cluster.ask("scontrol", "update", "NodeName=nodeA,nodeB", "State=RESUME")
    over = slurm_lab.wait_until_over(run)

    assert waiting.state is RunState.INIT
    assert over.state is RunState.TERMINATED


def test_a_queued_run_is_cancelled_and_never_starts(slurm_lab, cluster):
    cluster.ask("scontrol", "update", "NodeName=nodeA,nodeB", "State=DRAIN", "Reason=test")
    try:
        run = slurm_lab.submit(steps=3, on="slurm", limits=GRACE)
        slurm_lab.wait_until_run(run, lambda now: "Slurm: " in now.waiting_for, "a reason")
        slurm_lab.client.cancel_run(run.run_id)
        over = slurm_lab.wait_until_over(run)
    finally:
        cluster.ask("scontrol", "update", "NodeName=nodeA,nodeB", "State=RESUME")

    assert over.state is RunState.CANCELLED
    assert not slurm_lab.rundir(run).started.exists()
    wait_until(lambda: cluster.jobs()[over.job.removeprefix("held ")] == "CANCELLED", words="a cancelled job")


def test_a_running_run_is_cancelled_with_its_last_lines(slurm_lab):
    run = slurm_lab.submit(steps=100_000, rate=100, on="slurm", limits=GRACE)
    wait_for_steps(slurm_lab, run)

    slurm_lab.client.cancel_run(run.run_id, "enough")
    over = slurm_lab.wait_until_over(run)

    assert (over.state, over.reason) == (RunState.CANCELLED, "enough")
    assert over.telemetry == ""
    steps = [event["step_index"] for event in slurm_lab.events(run, "step")]
    assert steps == list(range(len(steps)))
    assert read_json(slurm_lab.rundir(run).exit)["ended_by"] == "cancel"


def test_a_job_that_was_cancelled_behind_our_back_is_faulted_with_that_reason(slurm_lab, cluster):
    run = slurm_lab.submit(steps=100_000, rate=100, on="slurm", limits=GRACE)
    wait_for_steps(slurm_lab, run)

    cluster.ask("scancel", slurm_lab.client.get_run(run.run_id).job)
    over = slurm_lab.wait_until_over(run)

    assert over.state is RunState.FAULTED
    assert over.reason.startswith("cancelled outside MOSAIC: its job was ended with scancel")
    assert over.telemetry == ""


def test_a_preempted_run_is_faulted_with_that_reason(slurm_lab, cluster):
    run = slurm_lab.submit(steps=100_000, rate=100, on="slurm", resources={"cpus": 4}, limits=GRACE)
    wait_for_steps(slurm_lab, run)
    node = slurm_lab.client.get_run(run.run_id).node

    urgent = cluster.ask(
        "sbatch", "--parsable", "-p", "urgent", "-w", node, "-c", "4", "-o", "/dev/null", "--wrap", "sleep 60"
    )
    try:
        over = slurm_lab.wait_until_over(run)
    finally:
        cluster.ask("scancel", urgent)

    assert over.state is RunState.FAULTED
    assert over.reason.startswith("preempted: Slurm gave its place to a job of higher priority")
    assert read_json(slurm_lab.rundir(run).exit)["ended_by"] == "cancel"


def test_a_time_limit_is_kept_by_the_holder(slurm_lab):
    run = slurm_lab.submit(steps=100_000, rate=100, on="slurm", limits={"time_s": 2, **GRACE})

    over = slurm_lab.wait_until_over(run)

    assert (over.state, over.reason.splitlines()[0]) == (RunState.FAULTED, "time limit: it ran longer than 2 s")


def test_a_worker_that_fails_is_faulted_with_its_exit_code(slurm_lab):
    run = slurm_lab.submit(steps=5, exit_code=3, on="slurm", limits=GRACE)

    over = slurm_lab.wait_until_over(run)

    assert over.state is RunState.FAULTED
    assert over.reason.startswith("exit code 3")


def test_a_killed_daemon_changes_nothing_for_a_run_on_slurm(slurm_lab):
    run = slurm_lab.submit(steps=300, rate=50, on="slurm", limits=GRACE)
    wait_for_steps(slurm_lab, run)

    slurm_lab.kill_daemon()
    slurm_lab.restart_daemon()
    over = slurm_lab.wait_until_over(run)

    assert (over.state, over.attempt) == (RunState.TERMINATED, 1)
    assert [event["step_index"] for event in slurm_lab.events(run, "step")] == list(range(300))


def test_gpus_are_requested_from_slurm(slurm_lab, cluster):
    run = slurm_lab.submit(steps=3, on="slurm", gpus={"requested": 1}, limits=GRACE)

    over = slurm_lab.wait_until_over(run)

    assert over.state is RunState.TERMINATED
    assert "gpu:1" in cluster.ask("scontrol", "show", "job", "-o", over.job)


def test_options_and_a_prolog_of_the_clusters_file_are_used_by_the_next_run(slurm_lab, tmp_path):
    script = tmp_path / "says.py"
    script.write_text("import os\nprint(os.environ['LD_LIBRARY_PATH'], os.environ['SLURM_JOB_ID'], flush=True)\n")
    file = slurm_lab.root.clusters / "slurm.toml"
    before = file.read_text()
    more = 'sbatch = ["--exclude=nodeA"]\nprolog = ["export LD_LIBRARY_PATH=/opt/lab/lib"]\n'
    file.write_text(before + more)
    try:
        over = slurm_lab.wait_until_over(slurm_lab.submit_worker({"script": str(script)}, on="slurm", limits=GRACE))
    finally:
        file.write_text(before)

    assert (over.state, over.node) == (RunState.TERMINATED, "nodeB")
    assert slurm_lab.text(over).decode() == f"/opt/lab/lib {over.job}\n"


@pytest.mark.parametrize(
    ("on", "cpus", "words"),
    [("slurm:no-such-partition", 1, "invalid partition"), ("slurm", 64, "not available")],
    ids=["partition", "CPUs"],
)
def test_what_slurm_refuses_is_told(slurm_lab, on, cpus, words):
    run = slurm_lab.submit(steps=3, on=on, limits=GRACE, resources={"cpus": cpus})

    over = slurm_lab.wait_until_over(run)

    assert over.state is RunState.FAULTED
    assert over.reason.startswith("spawn error: ")
    assert words in over.reason
