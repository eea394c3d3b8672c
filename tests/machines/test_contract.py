"""What every launcher promises to the dispatcher, with real processes: on this machine, a real Slurm and a real Ray."""

import asyncio
import contextlib
import os
import sys

import pytest
from lab import alive, wait_until
from node_ear import NodeEar
from ray_cluster import PYTHON

from mosaic.dispatch.launcher import Ref, Stage
from mosaic.dispatch.local_launcher import LocalLauncher
from mosaic.dispatch.ray_launcher import RayLauncher
from mosaic.dispatch.slurm_launcher import SlurmLauncher
from mosaic.engines.cluster import Cluster
from mosaic.engines.ray import Ray
from mosaic.engines.slurm import Slurm
from mosaic.model.durable import read_json
from mosaic.model.errors import MosaicError
from mosaic.model.node_paths import CODE
from mosaic.model.rundir import StateRoot
from mosaic.model.ulid import new_ulid

pytestmark = pytest.mark.timeout(400)  # of the first test on Ray: its start, which may take several tries
SLEEP = "import time; print('up', flush=True); time.sleep(600)"


@pytest.fixture(params=["local", "slurm", "ray"])
def launcher(request):
    local = LocalLauncher()
    if request.param == "local":
        return local
    if request.param == "ray":
        cluster = request.getfixturevalue("ray_cluster")
        return RayLauncher(Ray(cluster.ray.cluster), local)
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
def far_part(launcher, rundir, home, tmp_path):
    """What else launch.json has for nodes with a disk of their own, and somebody who answers their questions."""
    if not isinstance(launcher, RayLauncher):
        yield {}
        return
    ear = NodeEar(StateRoot(home), rundir)
    StateRoot(home).worker_file(rundir.run_id).write_text("{}")
    node = {"python": str(PYTHON), "root": str(tmp_path / "node"), "environments": "same", "environment": sys.prefix}
    yield {
        "home": True,
        "node": {**node, "worker": "toy", "ticket": "t"},
        "daemon": {"address": ear.address, "certificate": ear.certificate},
        "tailer_argv": [str(PYTHON), "-m", "mosaic.tail", "--run-dir", str(rundir.path), "--node"],
        "tailer_env": {"PYTHONPATH": CODE, "PATH": os.defpath},
    }
    ear.close()


@pytest.fixture
def submitted(launcher, rundir, far_part):
    """Hands over an attempt with this code; whatever is left of it is killed at the end."""
    refs = []

    def submit(code=SLEEP, attempt=1):
        ref = Ref(rundir, attempt)
        refs.append(Ref(rundir, attempt, launcher.submit(ref, launch(rundir, code, attempt) | far_part)))
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


def wait_for_holder(rundir):
    """Until its holder has written started.json; before that it may only say who took the launch."""
    wait_until(lambda: "root_pid" in (read_json(rundir.started) or {}), 60, "started.json")


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
    wait_for_holder(rundir)

    asyncio.run(stop_until_over(launcher, ref))

    assert read_json(rundir.exit)["ended_by"] == "cancel"
    assert not alive(read_json(rundir.started)["root_pid"])


def test_an_attempt_that_lives_is_not_settled(launcher, submitted, rundir):
    ref = begin(launcher, submitted())
    wait_for_holder(rundir)
    wait_for(launcher, ref, Stage.RUNNING)

    assert launcher.fence(ref) is None
    if not isinstance(
        launcher, LocalLauncher
    ):  # on this machine `settle` kills; the dispatcher asks for the fence first
        assert not launcher.settle(ref, read_json(rundir.started))


def test_a_second_start_of_one_attempt_starts_no_second_worker(launcher, submitted, rundir, tmp_path):
    starts = tmp_path / "starts"
    code = f"open({str(starts)!r}, 'a').write('x'); import time; time.sleep(600)"
    first = begin(launcher, submitted(code))
    wait_until(starts.exists, 60, "the first worker")

    second = begin(launcher, Ref(rundir, 1, launcher.submit(Ref(rundir, 1), read_json(rundir.launch))))
    if isinstance(launcher, RayLauncher):  # Ray has refused a second job of this name
        assert second.job == first.job
    elif second.job:  # the same name, as when Slurm itself starts a job twice
        jobs = launcher._slurm.jobs
        wait_until(lambda: any(job.id == second.job and job.state == "COMPLETED" for job in jobs()), 60, "its end")
    else:
        assert launcher._spawned[rundir.run_id].wait(60) == 0
    wait_for(launcher, first, Stage.RUNNING)

    assert starts.read_text() == "x"


def test_a_holder_of_an_older_attempt_leaves(launcher, submitted, rundir):
    late = submitted(attempt=1)
    newest = submitted("print('second')", attempt=2)

    if isinstance(launcher, RayLauncher):  # not even handed over
        with pytest.raises(MosaicError, match="not the one of attempt 1"):
            launcher.begin(late)
    else:
        # One after the other: two that start together may both find the lock held, and the next attempt follows.
        wait_for(launcher, begin(launcher, late), Stage.ENDED, Stage.ABSENT)
    begin(launcher, newest)
    wait_until(rundir.exit.exists, 60, "exit.json")

    assert read_json(rundir.exit)["attempt"] == 2


def test_a_killed_holder_is_settled_once_nothing_lives(launcher, submitted, rundir):
    ref = begin(launcher, submitted())
    wait_for_holder(rundir)
    started = read_json(rundir.started)

    os.kill(started["holder_pid"], 9)
    wait_until(lambda: launcher.settle(ref, started), 60, "a settled attempt")

    assert not alive(started["root_pid"])
    # On a node with a disk of its own the tailer writes it, because the daemon could not.
    assert (read_json(rundir.exit) or {}).get("ended_by") in (None, "holder died")
    fence = launcher.fence(ref)
    assert fence is not None
    os.close(fence)
