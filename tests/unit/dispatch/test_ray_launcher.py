"""What the launcher makes of Ray's answers. With a real Ray: tests/machines."""

import pytest
from lab import wait_until

from mosaic.dispatch.launcher import Ref, Stage
from mosaic.dispatch.local_launcher import LocalLauncher
from mosaic.dispatch.ray_launcher import RayLauncher
from mosaic.engines.cluster import Cluster
from mosaic.engines.ray import RayJob
from mosaic.model.durable import write_json
from mosaic.model.rundir import StateRoot
from mosaic.model.ulid import new_ulid


class Answers:
    """The dashboard: one job, in the state that the test says."""

    cluster = Cluster("ray", engine="ray")
    status = "PENDING"
    name = ""

    def __init__(self):
        self.deleted = []

    def jobs(self):
        return [RayJob(self.name, self.status)]

    def delete(self, name):
        self.deleted.append(name)


@pytest.fixture
def ref(home):
    root = StateRoot(home)
    root.make()
    rundir = root.run("runs", new_ulid())
    rundir.make()
    return Ref(rundir, 1, f"mosaic-{rundir.run_id}-1")


@pytest.fixture
def ray(ref):
    answers = Answers()
    answers.name = ref.job
    return answers


def look_until(launcher, ref, stage):
    wait_until(lambda: launcher.look(ref).stage is stage, 30, f"{stage}")


def test_a_job_that_has_taken_its_launch_does_not_wait_whatever_an_older_answer_says(ray, ref):
    launcher = RayLauncher(ray, LocalLauncher())
    look_until(launcher, ref, Stage.QUEUED)

    write_json(ref.rundir.started, {"attempt": 1, "taker": "a"})

    assert launcher.look(ref).stage is Stage.RUNNING


def test_a_job_that_runs_without_a_launch_has_started_nothing_yet(ray, ref):
    launcher = RayLauncher(ray, LocalLauncher())
    ray.status = "RUNNING"
    look_until(launcher, ref, Stage.STARTING)

    write_json(ref.rundir.started, {"attempt": 2, "taker": "a"})
    assert launcher.look(ref).stage is Stage.STARTING

    write_json(ref.rundir.started, {"attempt": 1, "taker": "a"})
    assert launcher.look(ref).stage is Stage.RUNNING


def test_a_job_of_a_run_that_is_over_is_deleted_a_while_after_its_end(ray, ref):
    seconds = [0.0]
    launcher = RayLauncher(ray, LocalLauncher(), clock=lambda: seconds[0])
    ray.status = "SUCCEEDED"

    launcher.forget(ref)
    wait_until(lambda: launcher._over[ref.job] is not None, 30, "an answer")
    early = list(ray.deleted)
    seconds[0] = 60.0

    wait_until(lambda: ray.deleted, 30, "a deleted job")
    assert (early, set(ray.deleted)) == ([], {ref.job})
