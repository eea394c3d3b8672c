import shutil
import tempfile
from pathlib import Path

import pytest
from lab import Lab
from ray_cluster import PYTHON, RayCluster
from slurm_cluster import SlurmCluster

from mosaic.cli.root import split_root
from mosaic.model.rundir import StateRoot


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """Two processes of xdist: in each, all tests share one cluster."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("ray" if _needs_ray(item) else "slurm"))


def _needs_ray(item):
    chosen = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "ray" in chosen or not {"ray_lab", "ray_cluster"}.isdisjoint(item.fixturenames)


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


@pytest.fixture(scope="session")
def ray_cluster():
    """A Ray of two nodes, for all tests of the session. A test that kills a node starts it again."""
    if not PYTHON.exists():
        pytest.fail("These tests start a real Ray. Build its environment with: make .venv-ray-cluster/.ready")
    # A short path: Ray's sockets are in it.
    cluster = RayCluster(Path(tempfile.mkdtemp(prefix="ray-")))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
        assert cluster.processes() == []


@pytest.fixture(scope="module")
def ray_lab(ray_cluster):
    """A lab whose daemon knows the cluster as `ray`; `lab.node_root` is the state folder that its nodes have."""
    home, node_root = (Path(tempfile.mkdtemp(prefix="mosaic-")) for _ in range(2))
    (home / "clusters").mkdir(mode=0o700)
    (home / "clusters" / "ray.toml").write_text(
        f'address = "{ray_cluster.address}"\nlisten = "127.0.0.1:0"\nroot = "{node_root}"\npython = "{PYTHON}"\n'
    )
    lab = Lab(home)
    lab.node_root = StateRoot(node_root)
    yield lab
    lab.close()
    for folder in (home, node_root):
        shutil.rmtree(folder, ignore_errors=True)
