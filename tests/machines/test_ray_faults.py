"""What dies on a Ray cluster: daemon, tailer, holder, a node. What is on the node's disk is not lost with them."""

import os
import signal

import pytest
from far_runs import GRACE, digests, launch_name, node_folder, steps_of, wait_for_steps
from lab import alive, wait_until

from mosaic.model.states import RunState

pytestmark = pytest.mark.timeout(400)  # of the first test: Ray's start, which may take several tries


def test_a_killed_daemon_changes_nothing(ray_lab):
    run = ray_lab.submit(steps=150, rate=30, checkpoint_every=100, on="ray", limits=GRACE)
    wait_for_steps(ray_lab, run)

    ray_lab.kill_daemon()
    ray_lab.restart_daemon()
    over = ray_lab.wait_until_over(run)

    assert (over.state, over.attempt, over.telemetry) == (RunState.TERMINATED, 1, "")
    assert steps_of(ray_lab, run) == list(range(150))
    assert digests(ray_lab.rundir(run).checkpoints) == digests(node_folder(ray_lab, run).checkpoints) != {}


def test_a_killed_tailer_is_replaced_and_nothing_is_lost(ray_lab):
    run = ray_lab.submit(steps=100_000, rate=30, on="ray", limits=GRACE)
    wait_for_steps(ray_lab, run)

    os.kill(ray_lab.tailer_pid(run), signal.SIGKILL)
    wait_for_steps(ray_lab, run, ray_lab.client.get_run(run.run_id).summary.steps + 20)
    ray_lab.client.cancel_run(run.run_id)
    over = ray_lab.wait_until_over(run)

    assert (over.state, over.telemetry) == (RunState.CANCELLED, "")
    assert steps_of(ray_lab, run) == list(range(over.summary.steps))
    assert len(node_folder(ray_lab, run).stdout.read_bytes().splitlines()) == over.summary.events


def test_the_tailer_of_a_killed_holder_sends_the_rest(ray_lab):
    run = ray_lab.submit(steps=100_000, rate=30, checkpoint_every=10, on="ray", limits=GRACE)
    wait_for_steps(ray_lab, run, 11)
    root = ray_lab.root_pid(run)

    os.kill(ray_lab.holder_pid(run), signal.SIGKILL)
    over = ray_lab.wait_until_over(run)

    assert over.state is RunState.FAULTED
    assert over.reason.startswith("holder died")
    assert (over.telemetry, alive(root)) == ("", False)
    assert len(node_folder(ray_lab, run).stdout.read_bytes().splitlines()) == over.summary.events
    assert digests(ray_lab.rundir(run).checkpoints) == digests(node_folder(ray_lab, run).checkpoints) != {}


def test_a_lost_node_is_told_and_the_run_is_not_started_again(ray_lab, ray_cluster):
    run = ray_lab.submit(steps=100_000, rate=30, on="ray:nodeB", limits=GRACE)
    wait_for_steps(ray_lab, run)
    root = ray_lab.root_pid(run)

    ray_cluster.kill_node("nodeB")
    try:
        over = ray_lab.wait_until_over(run, 150)
    finally:
        ray_cluster.start_node("nodeB")

    assert (over.state, over.attempt) == (RunState.FAULTED, 1)
    assert over.reason.startswith("node failed: Ray lost ")
    steps = steps_of(ray_lab, run)
    assert steps == list(range(len(steps))) != []
    wait_until(lambda: not alive(root), words="the end of its worker")


@pytest.mark.parametrize("point", ["far.queued", "far.recorded", "far.released", "far.taken", "far.whole"])
def test_a_daemon_killed_between_two_steps_starts_the_run_once(ray_lab, ray_cluster, monkeypatch, tmp_path, point):
    ray_lab.stop_daemon()
    with monkeypatch.context() as orders:
        orders.setenv("MOSAIC_FAILPOINTS", point)
        orders.setenv("MOSAIC_FAILPOINTS_DIR", str(tmp_path))
        ray_lab.restart_daemon()
        pid = ray_lab.daemon_pid()
        run = ray_lab.submit(steps=20, checkpoint_every=10, on="ray", limits=GRACE)
        wait_until(lambda: not alive(pid), 60, f"a daemon that dies at {point}")
    ray_lab.restart_daemon()
    over = ray_lab.wait_until_over(run)

    assert (over.state, over.attempt) == (RunState.TERMINATED, 1)
    assert steps_of(ray_lab, run) == list(range(20))
    assert digests(ray_lab.rundir(run).checkpoints) == digests(node_folder(ray_lab, run).checkpoints) != {}
    assert sum(job.name.startswith(launch_name(run)[:-1]) for job in ray_cluster.ray.jobs()) <= 1
