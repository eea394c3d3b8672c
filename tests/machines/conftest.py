import tempfile
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster


def pytest_collection_modifyitems(items):
    """All tests of this folder in one process of xdist: they share one cluster."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("slurm"))


@pytest.fixture(scope="session")
def cluster():
    """A Slurm of two nodes, for all tests of the session. A test that kills one of its daemons starts it again."""
    if missing := SlurmCluster.missing():
        pytest.fail(
            f"These tests start a real Slurm, and {', '.join(missing)} is not installed. Install it with: "
            "sudo apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"
        )
    # A short path: Slurm's and munge's sockets are in it.
    cluster = SlurmCluster(Path(tempfile.mkdtemp(prefix="slurm-")))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
