"""What is asked of Slurm's commands, and what their answers mean."""

import os

import pytest

from mosaic.dispatch.launcher import Ref, Stage
from mosaic.dispatch.local_launcher import LocalLauncher
from mosaic.dispatch.slurm_launcher import _STAGES, SlurmLauncher, _ended_by, _waits_for
from mosaic.engines.cluster import Cluster
from mosaic.engines.slurm import Job, JobSpec, Slurm
from mosaic.model.rundir import StateRoot


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    """Its arguments, one in a line; the id of the job is 7."""
    command = tmp_path / "bin" / "sbatch"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/asked\ncat > /dev/null\necho 7\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    return tmp_path / "asked"


@pytest.mark.parametrize(
    ("gpu_type", "gpus", "gres"),
    [("a100", 2, ["--gres=gpu:a100:2"]), ("", 1, ["--gres=gpu:1"]), ("a100", 0, [])],
    ids=["typed", "any", "none"],
)
def test_gpus_are_requested_with_the_type_of_the_cluster(sbatch, gpu_type, gpus, gres):
    slurm = Slurm(Cluster("slurm", gpu_type=gpu_type))

    assert slurm.submit(JobSpec("mosaic-A-1", "c", "true", "/dev/null", gpus=gpus)) == "7"

    assert [word for word in sbatch.read_text().splitlines() if word.startswith("--gres")] == gres


@pytest.mark.parametrize(
    ("reason", "starts", "words"),
    [
        ("Resources", "2026-11-18T14:20:00", "Slurm: Resources, about 14:20"),
        ("Priority", "N/A", "Slurm: Priority"),
        ("", "N/A", "Slurm: PENDING"),
    ],
)
def test_a_waiting_job_says_for_what_and_until_when(reason, starts, words):
    assert _waits_for(Job("7", "PENDING", reason, "", "mosaic-A-1", starts, "main")) == words


@pytest.mark.parametrize(
    ("state", "stage", "words"),
    [
        ("TIMEOUT", Stage.ENDED, "time limit of Slurm: its job ran longer than allowed (job 7 on n1)"),
        ("OUT_OF_MEMORY", Stage.ENDED, "out of memory: Slurm ended its job (job 7 on n1)"),
        ("PREEMPTED", Stage.ENDED, "preempted: Slurm gave its place to a job of higher priority (job 7 on n1)"),
        ("CANCELLED", Stage.ENDED, "cancelled outside MOSAIC: its job was ended with scancel (job 7 on n1)"),
        ("NODE_FAIL", Stage.LOST, "node failed: Slurm lost n1 (job 7)"),
        ("COMPLETED", Stage.ENDED, ""),
    ],
)
def test_slurms_words_as_stages_and_reasons(state, stage, words):
    job = Job("7", state, "None", "n1", "mosaic-A-1", "N/A", "main")

    assert (_STAGES[state], _ended_by(job, Slurm(Cluster("slurm")))) == (stage, words)


def test_slurms_own_limit_comes_after_the_one_that_the_holder_keeps(home):
    root = StateRoot(home)
    wants = {"partition": "", "cpus": 1.5, "memory_mb": 0, "gpus": 0, "default_time_s": 3600}
    launcher, ref = SlurmLauncher(Slurm(Cluster("slurm")), LocalLauncher()), Ref(root.run("runs", "A"), 1)

    ours = launcher._spec(ref, {"resources": wants, "time_limit_s": 90, "grace_s": 40.0})
    default = launcher._spec(ref, {"resources": wants, "time_limit_s": None, "grace_s": 0.0})

    assert (ours.minutes, ours.cpus) == (4, 2)  # 90 + 40 s, and a minute
    assert default.minutes == 61
