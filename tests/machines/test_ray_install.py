"""`mosaic worker install --on`: environments on the nodes of a real Ray, and runs that use them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from far_runs import GRACE, steps_of

from mosaic.model.durable import read_json
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState

pytestmark = pytest.mark.timeout(400)  # of the first test: Ray's start, which may take several tries
MOSAIC = Path(sys.executable).parent / "mosaic"


@pytest.fixture(scope="module")
def apart(ray_lab):
    """A cluster of that name whose nodes have environments of their own, in the state folder that is returned."""
    folder = Path(tempfile.mkdtemp(prefix="mosaic-"))
    settings = (ray_lab.root.clusters / "ray.toml").read_text().replace(str(ray_lab.node_root.path), str(folder))
    file = ray_lab.root.clusters / "apart.toml"
    file.write_text(f'engine = "ray"\nenvironments = "node"\n{settings}')
    yield StateRoot(folder)
    file.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def install(lab, *words):
    env = {**os.environ, "MOSAIC_HOME": str(lab.root.path)}
    done = subprocess.run([MOSAIC, "worker", "install", *words], capture_output=True, text=True, env=env, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_a_worker_is_installed_on_the_nodes_once_and_its_runs_use_that(ray_lab, apart):
    missing = ray_lab.wait_until_over(ray_lab.submit(steps=3, on="apart:nodeB", limits=GRACE))
    done = install(ray_lab, "toy", "--on", "apart", "--json")
    over = ray_lab.wait_until_over(ray_lab.submit(steps=3, on="apart:nodeB", limits=GRACE))
    stamp = (apart.envs / "toy").stat().st_ctime_ns
    again = install(ray_lab, "toy", "--on", "apart:nodeB")

    assert (missing.state, missing.attempt) == (RunState.FAULTED, 1)
    assert f"worker toy is not installed here ({apart.envs}/toy)" in missing.reason
    assert "Install it with: mosaic worker install toy --on apart:nodeB" in missing.reason
    # The tests' nodes share a disk, so only the first one has to do it. How many there are is not asserted: Ray's
    # dashboard lists a node that another test has killed and started again late.
    found = json.loads(done.stdout)
    assert {(one["name"], one["problem"]) for one in found} == {("toy", "")}
    assert [one["is_new"] for one in found].count(True) == 1
    assert "Creating an environment" in done.stderr
    assert (over.state, steps_of(ray_lab, over)) == (RunState.TERMINATED, [0, 1, 2])
    started = read_json(apart.run("runs", over.run_id).launch)
    assert started["argv"][0] == str(apart.envs / "toy" / "bin" / "python")
    assert len(again.stdout.splitlines()) == 1
    assert "is already installed, nothing has changed" in again.stdout
    assert (apart.envs / "toy").stat().st_ctime_ns == stamp
