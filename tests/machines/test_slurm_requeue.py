"""`--requeue-as-resume`: a run that its cluster ended is continued as a new run, as often as allowed and no more."""

import pytest
from lab import wait_until

from mosaic.model.errors import BadConfig
from mosaic.model.states import RunState

WHOLE_NODE = {"resources": {"cpus": 4}, "limits": {"grace_s": 2}}


def submit(lab, requeues, on="slurm", worker=None, **config):
    payload = {**WHOLE_NODE, "on": on, "requeue_as_resume": requeues}
    worker = worker or {"module": "toy_worker.cli", "config": {"steps": 100_000, "rate": 200, **config}}
    return lab.client.submit_run({"metadata": {"worker": worker}, "payload": payload})


def wait_for_checkpoint(lab, run):
    lab.wait_until_run(run, lambda now: now.summary.checkpoints > 0, "a checkpoint")


def preempt(lab, cluster, run):
    """Let a job of higher priority take the whole node."""
    node = lab.client.get_run(run.run_id).node
    return cluster.ask(
        *("sbatch", "--parsable", "-p", "urgent", "-w", node, "--cpus-per-task=4", "-o", "/dev/null"),
        *("--wrap", "sleep 600"),
    )


def child_of(lab, run):
    wait_until(lambda: lab.client.get_run(run.run_id).children, 30, "a run that continues it")
    children = lab.client.get_run(run.run_id).children
    assert len(children) == 1
    return lab.client.get_run(children[0])


def test_a_preempted_run_is_continued_from_its_checkpoint_and_no_more_often_than_allowed(slurm_lab, cluster):
    first = submit(slurm_lab, 1, checkpoint_every=20)
    wait_for_checkpoint(slurm_lab, first)
    urgent = preempt(slurm_lab, cluster, first)
    over = slurm_lab.wait_until_over(first)
    second = child_of(slurm_lab, first)
    try:
        wait_for_checkpoint(slurm_lab, second)
        again = preempt(slurm_lab, cluster, second)
        over_again = slurm_lab.wait_until_over(second)
    finally:
        cluster.ask("scancel", urgent, again)

    assert over.reason.startswith("preempted: ")
    assert (second.parent_run_id, second.relation, second.on) == (first.run_id, "resume", "slurm")
    assert second.history[0].reason.startswith(f"submitted by MOSAIC, because its cluster ended run {first.run_id}")
    steps = [event["step_index"] for event in slurm_lab.events(second, "step")]
    assert steps[0] > 0
    assert over_again.reason.startswith("preempted: ")
    assert not slurm_lab.client.get_run(second.run_id).children


@pytest.mark.slow  # Slurm's shortest limit is a minute, and it looks at limits every half minute
@pytest.mark.timeout(400)
def test_a_run_that_reaches_slurms_own_limit_is_continued_with_that_reason(slurm_lab):
    file = slurm_lab.root.clusters / "slurm.toml"
    before = file.read_text()
    file.write_text(before + 'sbatch = ["--time=1"]\n')
    try:
        first = submit(slurm_lab, 1, checkpoint_every=20)
        over = slurm_lab.wait_until_over(first, 240)
    finally:
        file.write_text(before)
    second = child_of(slurm_lab, first)
    slurm_lab.client.cancel_run(second.run_id)
    slurm_lab.wait_until_over(second)

    assert over.state is RunState.FAULTED
    assert over.reason.startswith("time limit of Slurm: its job ran longer than allowed")
    assert over.telemetry == ""
    assert second.relation == "resume"


def test_a_run_that_was_cancelled_or_failed_by_itself_is_not_continued(slurm_lab):
    failing = submit(slurm_lab, 3, steps=20, checkpoint_every=5, exit_code=3)
    cancelled = submit(slurm_lab, 3, checkpoint_every=20)
    wait_for_checkpoint(slurm_lab, cancelled)
    slurm_lab.client.cancel_run(cancelled.run_id)

    ended = [slurm_lab.wait_until_over(run) for run in (failing, cancelled)]

    assert [run.state for run in ended] == [RunState.FAULTED, RunState.CANCELLED]
    assert not any(slurm_lab.client.get_run(run.run_id).children for run in ended)


def test_a_daemon_killed_before_it_could_continue_a_run_leaves_that_to_the_next(
    slurm_lab, cluster, tmp_path, monkeypatch
):
    slurm_lab.stop_daemon()
    with monkeypatch.context() as orders:
        orders.setenv("MOSAIC_FAILPOINTS", "requeue.decided")
        orders.setenv("MOSAIC_FAILPOINTS_DIR", str(tmp_path))
        slurm_lab.restart_daemon()
        run = submit(slurm_lab, 1, checkpoint_every=20)
        wait_for_checkpoint(slurm_lab, run)
        urgent = preempt(slurm_lab, cluster, run)
        wait_until((tmp_path / "requeue.decided").exists, 60, "a daemon that is killed")
    cluster.ask("scancel", urgent)
    slurm_lab.restart_daemon()
    child = child_of(slurm_lab, run)
    slurm_lab.client.cancel_run(child.run_id)

    assert slurm_lab.wait_until_over(child).state is RunState.CANCELLED


@pytest.mark.parametrize(
    ("on", "worker", "words"),
    [
        ("local", None, "for this machine"),
        ("slurm", {"script": __file__}, "does not say how its runs are resumed"),
    ],
    ids=["local", "script"],
)
def test_a_run_that_cannot_be_continued_is_refused_at_submit(slurm_lab, on, worker, words):
    with pytest.raises(BadConfig, match=words):
        submit(slurm_lab, 1, on, worker)
