"""What the launcher makes of Slurm's answers. With a real Slurm: tests/machines."""

import os

import pytest
from lab import wait_until

from mosaic.dispatch.launcher import Ref, Stage
from mosaic.dispatch.local_launcher import LocalLauncher, take_lock
from mosaic.dispatch.slurm_launcher import SlurmLauncher
from mosaic.engines.cluster import Cluster
from mosaic.engines.slurm import Job
from mosaic.model.durable import write_json
from mosaic.model.rundir import StateRoot
from mosaic.model.ulid import new_ulid


class Answers:
    """Slurm's commands: one job, in the state that the test says."""

    cluster = Cluster("slurm")
    state = "PENDING"
    name = ""

    def __init__(self):
        self.cancelled = []

    def jobs(self):
        return [Job("7", self.state, "None", "", self.name, "N/A", "main")]

    def cancel_waiting(self, job_id):
        self.cancelled.append(job_id)


@pytest.fixture
def ref(home):
    root = StateRoot(home)
    root.make()
    rundir = root.run("runs", new_ulid())
    rundir.make()
    return Ref(rundir, 1, "7")


@pytest.fixture
def slurm(ref):
    answers = Answers()
    answers.name = f"mosaic-{ref.rundir.run_id}-1"
    return answers


def look_until(launcher, ref, stage):
    wait_until(lambda: launcher.look(ref).stage is stage, 30, f"{stage}")


def test_an_answer_that_is_older_than_the_start_does_not_say_that_the_job_waits_again(slurm, ref):
    launcher = SlurmLauncher(slurm, LocalLauncher())
    look_until(launcher, ref, Stage.QUEUED)

    write_json(ref.rundir.started, {"attempt": 1})
    slurm.state = "RUNNING"
    seen = launcher.look(ref).stage
    look_until(launcher, ref, Stage.RUNNING)

    assert seen in (Stage.UNKNOWN, Stage.RUNNING)


def test_a_job_that_waits_again_after_its_start_is_seen(slurm, ref):
    launcher = SlurmLauncher(slurm, LocalLauncher())
    write_json(ref.rundir.started, {"attempt": 1})

    look_until(launcher, ref, Stage.QUEUED)


def test_a_held_lock_is_a_live_holder_whatever_slurm_says(slurm, ref):
    launcher = SlurmLauncher(slurm, LocalLauncher())
    look_until(launcher, ref, Stage.QUEUED)

    lock = take_lock(ref.rundir)
    seen = launcher.look(ref).stage
    os.close(lock)

    assert seen is Stage.RUNNING


def test_a_job_that_appears_after_the_end_of_its_run_is_cancelled(slurm, ref):
    launcher = SlurmLauncher(slurm, LocalLauncher())
    name, slurm.name = slurm.name, "mosaic-of-another-daemon-1"
    look_until(launcher, ref, Stage.ABSENT)

    launcher.forget(Ref(ref.rundir, 2, "8"))
    slurm.name = name

    wait_until(lambda: slurm.cancelled, 30, "a cancelled job")
    assert set(slurm.cancelled) == {"7"}


def test_a_waiting_job_of_a_run_that_is_not_over_is_left_alone(slurm, ref):
    launcher = SlurmLauncher(slurm, LocalLauncher())
    launcher.forget(Ref(StateRoot(ref.rundir.path.parent.parent).run("runs", new_ulid()), 1, "8"))
    answers = []
    jobs = slurm.jobs
    slurm.jobs = lambda: answers.append("one") or jobs()

    wait_until(lambda: launcher.look(ref) and len(answers) > 1, 30, "two answers")

    assert slurm.cancelled == []
