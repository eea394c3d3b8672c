"""A Ray that asks everybody for a token, as Ray itself sets it up for a user who has one."""

import tempfile
from pathlib import Path

import pytest
from far_runs import GRACE, digests, node_folder, steps_of
from ray_cluster import RayCluster

from mosaic.model.states import RunState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # a Ray of its own, whose start may take several tries


@pytest.fixture(scope="module")
def ray_cluster():
    cluster = RayCluster(Path(tempfile.mkdtemp(prefix="ray-")), token="0123456789abcdef0123456789abcdef")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


def test_a_run_goes_there_with_the_token_of_the_clusters_file_and_not_without(ray_lab, ray_cluster):
    file = ray_lab.root.clusters / "ray.toml"
    first = ray_lab.submit(steps=3, on="ray", limits=GRACE)
    waiting = ray_lab.wait_until_run(first, lambda now: "HTTP 401" in now.waiting_for, "a reason").waiting_for
    file.write_text(file.read_text() + f'token_file = "{ray_cluster.token_file}"\n')

    # The file is read at the next submit, and then the first run goes on, too.
    over = ray_lab.wait_until_over(ray_lab.submit(steps=50, checkpoint_every=25, on="ray", limits=GRACE))

    assert "refuses the caller (HTTP 401). Set token_file" in waiting
    assert ray_lab.wait_until_over(first).state is RunState.TERMINATED
    assert (over.state, over.telemetry) == (RunState.TERMINATED, "")
    assert steps_of(ray_lab, over) == list(range(50))
    assert digests(ray_lab.rundir(over).checkpoints) == digests(node_folder(ray_lab, over).checkpoints) != {}
