"""What every launcher promises to the dispatcher, with real processes: on this machine and on a real Slurm."""

import asyncio
import contextlib
import os
import sys

import pytest
from lab import alive, wait_until

from mosaic.dispatch.launcher import Ref, Stage
from mosaic.dispatch.local_launcher import LocalLauncher
from mosaic.dispatch.slurm_launcher import SlurmLauncher
from mosaic.engines.cluster import Cluster
from mosaic.engines.slurm import Slurm
from mosaic.model.durable import read_json
from mosaic.model.rundir import StateRoot
from mosaic.model.ulid import new_ulid

SLEEP = "import time; print('up', flush=True); time.sleep(600)"


@pytest.fixture(params=["local", "slurm"])
def launcher(request):
    local = LocalLauncher()
    if request.param == "local":
        return local
    cluster = request.getfixturevalue("cluster")
    return SlurmLauncher(Slurm(Cluster("slurm", conf=str(cluster.conf))), local)


@pytest.fixture
def rundir(home):
    root = StateRoot(home)
    root.make()
    rundir = root.run("runs", new_ulid())
    rundir.make()
    return rundir


@pytest.fixture
def submitted(launcher, rundir):
    """Hands over an attempt with this code; whatever is left of it is killed at the end."""
    refs = []

    def submit(code=SLEEP, attempt=1):
        ref = Ref(rundir, attempt)
        refs.append(Ref(rundir, attempt, launcher.submit(ref, launch(rundir, code, attempt))))
        return refs[-1]

    yield submit
    started = read_json(rundir.started) or {}
    with contextlib.suppress(ProcessLookupError):
        if started.get("holder_pid"):
            os.kill(started["holder_pid"], 9)
    for ref in refs:
        ask(launcher.forget, ref)


def launch(rundir, code, attempt):
    return {
        "version": 1,
        "run_id": rundir.run_id,
        "attempt": attempt,
        "nonce": "n",
        "secret": f"secret {attempt}",
        "argv": [sys.executable, "-c", code],
        "env": {"MOSAIC_RUN_ID": rundir.run_id, "MOSAIC_RUN_DIR": str(rundir.path)},
        "cwd": str(rundir.path),
        "time_limit_s": None,
        "grace_s": 1.0,
        "resources": {"partition": "", "cpus": 1, "memory_mb": 0, "gpus": 0},
    }


def ask(method, *arguments):
    """A call as the daemon makes it, on a running loop."""

    async def call():
        return method(*arguments)

    return asyncio.run(call())


def wait_for(launcher, ref, *stages):
    wait_until(lambda: launcher.look(ref).stage in stages, 60, f"{stages}: {launcher.look(ref)}")


def begin(launcher, ref):
    return Ref(ref.rundir, ref.attempt, launcher.begin(ref))


async def stop_until_over(launcher, ref):
    launcher.watch(ref, lambda: None)
    while launcher.look(ref).stage not in (Stage.ENDED, Stage.ABSENT):
        launcher.stop(ref)
        await asyncio.sleep(0.05)


def test_nothing_runs_before_it_has_begun(launcher, submitted, rundir):
    ref = submitted()

    wait_for(launcher, ref, Stage.ABSENT, Stage.QUEUED)

    assert not rundir.started.exists()
    assert read_json(rundir.launch)["attempt"] == 1


def test_an_attempt_runs_and_ends_by_itself(launcher, submitted, rundir):
    ref = begin(launcher, submitted("print('done')"))

    wait_until(rundir.exit.exists, 60, "exit.json")
    wait_for(launcher, ref, Stage.ENDED, Stage.ABSENT)

    assert not launcher.lives(ref, read_json(rundir.started))
    assert launcher.settle(ref, {})
    assert rundir.stdout.read_bytes() == b"done\n"


def test_a_running_attempt_is_seen_and_stopped_with_its_grace(launcher, submitted, rundir):
    ref = begin(launcher, submitted())
    wait_for(launcher, ref, Stage.RUNNING)
    wait_until(rundir.started.exists, 60, "started.json")

    asyncio.run(stop_until_over(launcher, ref))

    assert read_json(rundir.exit)["ended_by"] == "cancel"
    assert not alive(read_json(rundir.started)["root_pid"])


def test_an_attempt_that_lives_is_not_settled(launcher, submitted, rundir):
    ref = begin(launcher, submitted())
    wait_until(rundir.started.exists, 60, "started.json")
    wait_for(launcher, ref, Stage.RUNNING)

    assert launcher.fence(ref) is None
    if isinstance(launcher, SlurmLauncher):  # on this machine `settle` kills; the dispatcher asks for the fence first
        assert not launcher.settle(ref, read_json(rundir.started))


def test_a_second_start_of_one_attempt_starts_no_second_worker(launcher, submitted, rundir, tmp_path):
    starts = tmp_path / "starts"
    code = f"open({str(starts)!r}, 'a').write('x'); import time; time.sleep(600)"
    first = begin(launcher, submitted(code))
    wait_until(starts.exists, 60, "the first worker")

    second = begin(launcher, Ref(rundir, 1, launcher.submit(Ref(rundir, 1), read_json(rundir.launch))))
    if second.job:  # the same name, as when Slurm itself starts a job twice
        jobs = launcher._slurm.jobs
        wait_until(lambda: any(job.id == second.job and job.state == "COMPLETED" for job in jobs()), 60, "its end")
    else:
        assert launcher._spawned[rundir.run_id].wait(60) == 0
    wait_for(launcher, first, Stage.RUNNING)

    assert starts.read_text() == "x"


def test_a_holder_of_an_older_attempt_leaves(launcher, submitted, rundir):
    late = submitted(attempt=1)
    newest = submitted("print('second')", attempt=2)

    late = begin(launcher, late)
    newest = begin(launcher, newest)
    wait_until(rundir.exit.exists, 60, "exit.json")

    assert read_json(rundir.exit)["attempt"] == 2
    wait_for(launcher, late, Stage.ENDED, Stage.ABSENT)


def test_a_killed_holder_is_settled_once_nothing_lives(launcher, submitted, rundir):
    ref = begin(launcher, submitted())
    wait_until(rundir.started.exists, 60, "started.json")
    started = read_json(rundir.started)

    os.kill(started["holder_pid"], 9)
    wait_until(lambda: launcher.settle(ref, started), 60, "a settled attempt")

    assert not alive(started["root_pid"])
    assert not rundir.exit.exists()
    fence = launcher.fence(ref)
    assert fence is not None
    os.close(fence)
