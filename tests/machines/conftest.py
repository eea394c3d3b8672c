import shutil
import tempfile
from pathlib import Path

import pytest
from lab import Lab
from slurm_cluster import SlurmCluster

from mosaic.cli.root import split_root
from mosaic.model.rundir import StateRoot


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


@pytest.fixture(scope="module")
def slurm_lab(cluster):
    """A lab whose daemon knows the cluster as `slurm`, for all tests of a module. Its databases are not in its root."""
    home, own = (Path(tempfile.mkdtemp(prefix="mosaic-")) for _ in range(2))
    split_root(StateRoot(home), own)
    (home / "clusters").mkdir(mode=0o700)
    (home / "clusters" / "slurm.toml").write_text(f'conf = "{cluster.conf}"\nlisten = "127.0.0.1:0"\n')
    lab = Lab(home)
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)
    shutil.rmtree(own, ignore_errors=True)
