"""What goes wrong around a Ray cluster while nothing dies: a full disk of a node."""

import shutil
import tempfile
from pathlib import Path

import pytest
from far_runs import GRACE, steps_of, wait_for_steps
from small_disk import fill, small_disk

from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState

pytestmark = pytest.mark.timeout(400)  # of the first test: Ray's start, which may take several tries


@pytest.fixture
def small_root(ray_lab):
    """The state folder of the nodes of a cluster `small`, on a disk of its own."""
    folder = Path(tempfile.mkdtemp(prefix="mosaic-"))
    text = (ray_lab.root.clusters / "ray.toml").read_text().replace(str(ray_lab.node_root.path), str(folder))
    (ray_lab.root.clusters / "small.toml").write_text(f'engine = "ray"\n{text}')
    with small_disk(folder):
        yield StateRoot(folder)
    shutil.rmtree(folder, ignore_errors=True)


def test_a_full_disk_of_a_node_is_a_named_gap_and_the_run_ends(ray_lab, small_root):
    run = ray_lab.submit(steps=1_500, rate=300, metrics_every=0, on="small", limits=GRACE)
    wait_for_steps(ray_lab, run, 150)

    ballast = small_root.path / "ballast"
    fill(ballast)
    wait_for_steps(ray_lab, run, 500)
    ballast.unlink()
    over = ray_lab.wait_until_over(run)

    steps = steps_of(ray_lab, run)
    gaps = [event for event in ray_lab.events(run, "lifecycle") if event["event"] == "telemetry_gap"]
    assert (over.state, over.telemetry) == (RunState.TERMINATED, ""), over.reason
    assert steps == sorted(set(steps))
    assert len(steps) + sum(gap["payload"]["lines"] for gap in gaps) >= 1_500
    assert ray_lab.rundir(run).stdout.read_bytes() == small_root.run("runs", run.run_id).stdout.read_bytes()


def test_a_node_whose_disk_is_full_starts_nothing_and_says_so(ray_lab, small_root):
    fill(small_root.path / "ballast")

    over = ray_lab.wait_until_over(ray_lab.submit(steps=3, on="small", limits=GRACE))

    assert (over.state, over.attempt) == (RunState.FAULTED, 1)
    assert not ray_lab.rundir(over).started.exists()
    assert "Nothing was started on " in over.reason
    assert "No space left on device" in over.reason
