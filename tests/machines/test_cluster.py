"""The tests' own Slurm: it starts in seconds, runs jobs on both nodes, and leaves nothing behind."""

import tempfile
from pathlib import Path

from lab import wait_until
from slurm_cluster import SlurmCluster


def test_a_job_runs_on_each_node(cluster, tmp_path):
    for node in ("nodeA", "nodeB"):
        out = tmp_path / node
        cluster.ask(
            "sbatch", "--parsable", "-w", node, "-o", "/dev/null", "--wrap", f"hostname; echo $SLURMD_NODENAME > {out}"
        )

    wait_until(lambda: all((tmp_path / node).exists() for node in ("nodeA", "nodeB")), words="two jobs")
    assert (tmp_path / "nodeB").read_text() == "nodeB\n"


def test_nothing_is_left_of_a_closed_cluster():
    cluster = SlurmCluster(Path(tempfile.mkdtemp(prefix="slurm-")))
    try:
        cluster.start()
        job = cluster.ask("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 600")
        wait_until(lambda: cluster.jobs().get(job) == "RUNNING", words="a running job")
    finally:
        cluster.close()

    assert cluster.processes() == []
    assert not cluster.folder.exists()
