"""Ray's head dies, and with it, after a minute, its nodes: no run may wait for them for ever."""

import os
import signal
import tempfile
from pathlib import Path

import pytest
from far_runs import GRACE, steps_of, wait_for_steps
from lab import alive, cmdline, wait_until
from ray_cluster import RayCluster

from mosaic.model.procfs import descendants
from mosaic.model.states import RunState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def ray_cluster():
    """Its own: it is not started again."""
    cluster = RayCluster(Path(tempfile.mkdtemp(prefix="ray-")))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


def kill_head(cluster):
    head = cluster._nodes["head"]
    servers = [pid for pid in descendants(head.pid) if b"gcs_server\0" in cmdline(pid)]
    assert servers
    for pid in (head.pid, *servers):
        os.kill(pid, signal.SIGKILL)


def test_runs_end_with_their_lines_stored_when_rays_head_is_killed(ray_lab, ray_cluster):
    runs = [ray_lab.submit(steps=1_000_000, rate=30, on=f"ray:{node}", limits=GRACE) for node in ("head", "nodeB")]
    for run in runs:
        wait_for_steps(ray_lab, run)
    roots = [ray_lab.root_pid(run) for run in runs]

    kill_head(ray_cluster)

    for run in runs:
        over = ray_lab.wait_until_over(run, 240)
        assert (over.state, over.attempt) == (RunState.FAULTED, 1)
        assert over.reason.startswith("holder died")
        assert "stay on its node" not in over.reason
        steps = steps_of(ray_lab, run)
        assert steps == list(range(len(steps))) != []
    wait_until(lambda: not any(map(alive, roots)), words="the end of the workers")
