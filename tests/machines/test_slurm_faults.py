"""What dies on a cluster: nodes, Slurm's controller, the daemon between two steps. No run is ever started twice."""

import os
import signal

import pytest
from lab import alive, all_pids, cmdline, environ, wait_until

from mosaic.model.durable import read_json
from mosaic.model.states import RunState

GRACE = {"grace_s": 2}


@pytest.fixture
def ledger(tmp_path):
    """Where every worker that starts notes its start; how many have."""
    path = tmp_path / "starts"
    path.touch()
    return path


def wait_for_steps(lab, run, count=1):
    return lab.wait_until_run(run, lambda now: now.summary.steps >= count, f"{count} steps")


def script(ledger, seconds=600):
    return f"""import json, time
with open({str(ledger)!r}, "a") as file:
    file.write("start\\n")
for step in range({seconds} * 20):
    print(json.dumps({{"type": "step", "step_index": step, "reward": 1.0}}), flush=True)
    time.sleep(0.05)
"""


@pytest.fixture
def submit_counted(slurm_lab, ledger, tmp_path):
    def submit(seconds=600):
        path = tmp_path / "counted.py"
        path.write_text(script(ledger, seconds))
        return slurm_lab.submit_worker({"script": str(path)}, limits=GRACE, on="slurm")

    return submit


def starts(ledger):
    return ledger.read_text().count("start")


def processes_of(run):
    return [pid for pid in all_pids() if run.run_id.encode() in environ(pid) + cmdline(pid) and alive(pid)]


@pytest.mark.parametrize("point", ["far.placed", "spawn.written", "far.queued", "far.recorded", "far.released"])
def test_a_daemon_killed_between_two_steps_of_a_submit_starts_one_worker(
    slurm_lab, cluster, submit_counted, ledger, tmp_path, monkeypatch, point
):
    slurm_lab.stop_daemon()
    with monkeypatch.context() as orders:
        orders.setenv("MOSAIC_FAILPOINTS", point)
        orders.setenv("MOSAIC_FAILPOINTS_DIR", str(tmp_path))
        slurm_lab.restart_daemon()
        run = submit_counted(seconds=1)
        wait_until((tmp_path / point).exists, words=f"a daemon that reaches {point}")
        wait_until(lambda: not _is_served(slurm_lab), words="its death")
    slurm_lab.restart_daemon()
    over = slurm_lab.wait_until_over(run)

    assert over.state is RunState.TERMINATED, over.reason
    assert starts(ledger) == 1
    wait_until(lambda: run.run_id not in cluster.waiting(), 60, "no job of it in the queue")


def _is_served(lab):
    pid = lab.root.pid.read_text().strip() if lab.root.pid.exists() else ""
    return pid.isdigit() and alive(int(pid))


@pytest.mark.parametrize("after", ["at once", "running"])
def test_a_killed_controller_never_makes_two_workers(slurm_lab, cluster, submit_counted, ledger, after):
    run = submit_counted(seconds=8)
    if after == "running":
        wait_for_steps(slurm_lab, run)
    else:
        slurm_lab.wait_until_run(run, lambda now: now.job != "", "a job")

    cluster.kill("slurmctld")
    cluster.start_daemon("slurmctld")
    over = slurm_lab.wait_until_over(run, timeout_s=100)

    # Slurm may have forgotten the job, or have killed its processes and started it again.
    assert over.state in (RunState.TERMINATED, RunState.FAULTED), over
    assert over.state is RunState.TERMINATED or over.reason
    assert starts(ledger) <= 1 or over.attempt > 1
    steps = [event["step_index"] for event in slurm_lab.events(run, "step")]
    assert steps == list(range(len(steps)))
    wait_until(lambda: processes_of(run) == [], words="the end of all processes")
    cluster.wait_until_idle()


def test_a_lost_node_faults_the_run_and_says_that_it_proves_nothing(slurm_lab, cluster, submit_counted, ledger):
    run = submit_counted()
    node = wait_for_steps(slurm_lab, run).node

    cluster.kill(node)
    try:
        over = slurm_lab.wait_until_over(run, timeout_s=120)
        assert processes_of(run) != []
    finally:
        cluster.start_daemon(node)

    assert over.state is RunState.FAULTED
    assert over.reason.startswith(f"node failed: Slurm lost {node}")
    assert starts(ledger) == 1
    wait_until(lambda: processes_of(run) == [], 60, "the node to end the run's processes")
    cluster.wait_until_idle()


def test_a_node_daemon_that_comes_back_changes_nothing(slurm_lab, cluster, submit_counted, ledger):
    run = submit_counted(seconds=6)
    node = wait_for_steps(slurm_lab, run).node

    cluster.kill(node)
    cluster.start_daemon(node)
    over = slurm_lab.wait_until_over(run)

    assert over.state is RunState.TERMINATED
    assert starts(ledger) == 1


def test_a_killed_holder_faults_the_run(slurm_lab, submit_counted):
    run = submit_counted()
    wait_for_steps(slurm_lab, run)

    os.kill(slurm_lab.holder_pid(run), signal.SIGKILL)
    over = slurm_lab.wait_until_over(run)

    assert over.state is RunState.FAULTED
    assert over.reason.startswith("its holder failed")
    wait_until(lambda: processes_of(run) == [], words="the end of all processes")


def test_a_killed_tailer_is_replaced_on_the_node(slurm_lab, submit_counted):
    run = submit_counted()
    wait_for_steps(slurm_lab, run)

    os.kill(slurm_lab.tailer_pid(run), signal.SIGKILL)
    stored = slurm_lab.client.get_run(run.run_id).summary.steps
    wait_for_steps(slurm_lab, run, stored + 20)
    slurm_lab.client.cancel_run(run.run_id)
    over = slurm_lab.wait_until_over(run)

    assert (over.state, over.telemetry) == (RunState.CANCELLED, "")
    assert [event["step_index"] for event in slurm_lab.events(run, "step")] == list(range(over.summary.steps))


def test_a_requeued_job_is_not_started_again(slurm_lab, cluster, submit_counted, ledger):
    run = submit_counted()
    job = wait_for_steps(slurm_lab, run).job

    cluster.ask("scontrol", "update", f"JobId={job}", "Requeue=1")
    cluster.ask("scontrol", "requeue", job)
    over = slurm_lab.wait_until_over(run)

    assert over.state is RunState.FAULTED
    assert over.reason.startswith("requeued outside MOSAIC")
    assert starts(ledger) == 1
    wait_until(lambda: cluster.jobs()[job] != "PENDING", words="the requeued job to be cancelled")
    assert read_json(slurm_lab.rundir(run).exit)["ended_by"] == "cancel"
