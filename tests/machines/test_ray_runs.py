"""Runs on a real Ray of two nodes that share no folder with the daemon: the same states, lines and reasons as here."""

import json
import os
import subprocess

import pytest
from far_runs import GRACE, digests, launch_name, node_folder, steps_of, wait_for_steps
from lab import alive, environ, wait_until
from ray_cluster import PYTHON

from mosaic.model.durable import read_json
from mosaic.model.node_paths import TICKET
from mosaic.model.states import RunState

pytestmark = pytest.mark.timeout(400)  # of the first test: Ray's start, which may take several tries


@pytest.fixture(scope="module")
def finished(ray_lab):
    """A run of the toy worker that has ended by itself."""
    run = ray_lab.submit(steps=200, rate=0, checkpoint_every=100, stderr_lines=2, on="ray:nodeB", limits=GRACE)
    return ray_lab.wait_until_over(run)


def test_a_run_ends_with_every_line_stored(ray_lab, finished):
    assert (finished.state, finished.reason) == (RunState.TERMINATED, "")
    assert (finished.on, finished.attempt, finished.telemetry) == ("ray:nodeB", 1, "")
    assert steps_of(ray_lab, finished) == list(range(200))
    assert ray_lab.text(finished, "stderr") == node_folder(ray_lab, finished).stderr.read_bytes() != b""


def test_its_files_are_brought_home_as_they_are_on_the_node(ray_lab, finished):
    there = node_folder(ray_lab, finished)
    home = ray_lab.rundir(finished)

    assert there.path != home.path
    assert len(digests(there.checkpoints)) >= 4
    assert digests(home.checkpoints) == digests(there.checkpoints)
    assert home.stdout.read_bytes() == there.stdout.read_bytes()
    assert list((home.control / "incoming").iterdir()) == []


def test_its_checkpoint_can_be_continued_on_this_machine(ray_lab, finished):
    """The run reported the path that its checkpoint has on the node."""
    metadata = {"parent_run_id": finished.run_id, "relation": "resume", "worker": {"config": {"steps": 220}}}
    resumed = ray_lab.client.submit_run({"metadata": metadata, "payload": {"on": "local"}})

    assert ray_lab.wait_until_over(resumed).state is RunState.TERMINATED
    assert steps_of(ray_lab, resumed) == list(range(200, 220))


def test_ray_is_shown_no_secret(ray_lab, ray_cluster):
    run = ray_lab.submit(steps=100_000, rate=50, on="ray", limits=GRACE)
    wait_for_steps(ray_lab, run)
    launch = read_json(ray_lab.rundir(run).launch)

    shown = json.dumps(ray_cluster.ray._ask_json("GET", "/api/jobs/")) + ray_cluster.ray.log(launch_name(run))

    assert launch["node"]["ticket"] in shown
    assert not [word for word in (launch["secret"], launch["nonce"]) if word in shown]
    assert b"MOSAIC_NODE=" not in environ(ray_lab.root_pid(run))
    # Whoever copies the ticket comes too late: the launch was taken.
    ticket = json.loads(
        next(job for job in jobs(ray_cluster) if launch_name(run) in str(job))["runtime_env"]["env_vars"][TICKET]
    )
    second = start_again(ray_lab, ticket)
    assert (second.returncode, "was started by another process" in second.stderr) == (4, True)

    ray_lab.client.cancel_run(run.run_id, "enough")
    over = ray_lab.wait_until_over(run)

    assert (over.state, over.reason, over.telemetry) == (RunState.CANCELLED, "enough", "")
    assert steps_of(ray_lab, run) == list(range(over.summary.steps))
    assert read_json(ray_lab.rundir(run).exit)["ended_by"] == "cancel"
    assert not alive(ray_lab.root_pid(run))


def jobs(cluster):
    return cluster.ray._ask_json("GET", "/api/jobs/")


def start_again(lab, ticket):
    from mosaic.engines.node_code import PLATFORM

    env = {"PATH": os.environ["PATH"], TICKET: json.dumps(ticket), "PYTHONPATH": f"{PLATFORM.parent}:{sdk_folder()}"}
    return subprocess.run([PYTHON, "-m", "mosaic.tail.arrival"], env=env, cwd="/", capture_output=True, text=True)


def sdk_folder():
    import inotify_simple
    import mosaic_sdk

    return f"{os.path.dirname(os.path.dirname(mosaic_sdk.__file__))}:{os.path.dirname(inotify_simple.__file__)}"


def test_a_queued_run_says_what_it_waits_for_and_is_cancelled(ray_lab, ray_cluster):
    run = ray_lab.submit(steps=3, on="ray", resources={"cpus": 64}, limits=GRACE)
    ray_lab.wait_until_run(run, lambda now: "Ray: CPUs" in now.waiting_for, "a reason")

    ray_lab.client.cancel_run(run.run_id)
    over = ray_lab.wait_until_over(run)

    assert over.state is RunState.CANCELLED
    assert not ray_lab.rundir(run).started.exists()


def test_a_worker_that_fails_is_faulted_with_its_exit_code(ray_lab):
    run = ray_lab.submit(steps=5, exit_code=3, on="ray", gpus={"requested": 1}, limits=GRACE)

    over = ray_lab.wait_until_over(run)

    assert over.state is RunState.FAULTED
    assert over.reason.startswith("exit code 3")


def test_a_job_that_was_stopped_behind_our_back_is_faulted_with_that_reason(ray_lab, ray_cluster):
    run = ray_lab.submit(steps=100_000, rate=50, on="ray", limits=GRACE)
    wait_for_steps(ray_lab, run)

    ray_cluster.ray.stop(launch_name(run))
    over = ray_lab.wait_until_over(run)

    assert over.state is RunState.FAULTED
    assert over.reason.startswith("cancelled outside MOSAIC: its job was stopped in Ray")
    assert (over.telemetry, steps_of(ray_lab, run)) == ("", list(range(over.summary.steps)))


def test_a_node_without_a_usable_python_is_named(ray_lab):
    file = ray_lab.root.clusters / "broken.toml"
    file.write_text((ray_lab.root.clusters / "ray.toml").read_text().replace(str(PYTHON), "/usr/bin/python3"))
    file.write_text(f'engine = "ray"\n{file.read_text()}')

    over = ray_lab.wait_until_over(ray_lab.submit(steps=3, on="broken", limits=GRACE))

    assert (over.state, over.attempt) == (RunState.FAULTED, 1)
    assert "/usr/bin/python3 " in over.reason
    assert "set `python` of the cluster" in over.reason


def test_jobs_of_runs_that_are_over_leave_rays_list(ray_lab, ray_cluster, finished):
    wait_until(lambda: launch_name(finished) not in str(jobs(ray_cluster)), 60, "a shorter list")
