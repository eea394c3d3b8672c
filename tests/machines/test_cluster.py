"""The tests' own Slurm: it starts in seconds, runs jobs on both nodes, and leaves nothing behind."""

import socket
import tempfile
from pathlib import Path

import pytest
import slurm_cluster
from lab import wait_until
from slurm_cluster import SlurmCluster, free_ports


def test_a_job_runs_on_each_node(cluster, tmp_path):
    for node in ("nodeA", "nodeB"):
        out = tmp_path / node
        cluster.ask(
            "sbatch", "--parsable", "-w", node, "-o", "/dev/null", "--wrap", f"hostname; echo $SLURMD_NODENAME > {out}"
        )

    wait_until(lambda: all((tmp_path / node).exists() for node in ("nodeA", "nodeB")), words="two jobs")
    assert (tmp_path / "nodeB").read_text() == "nodeB\n"


def test_clusters_at_the_same_time_do_not_know_each_other(cluster):
    other = SlurmCluster(Path(tempfile.mkdtemp(prefix="slurm-")))
    try:
        other.start()
        job = other.ask("sbatch", "--parsable", "--hold", "-J", "of the other", "-o", "/dev/null", "--wrap", "true")
        cluster.wait_until_idle()

        assert other.jobs() == {job: "PENDING"}
        assert "of the other" not in cluster.ask("squeue", "-h", "-t", "all", "-o", "%j")
    finally:
        other.close()
    assert cluster.ask("sinfo", "-h", "-o", "%D") == "2"


@pytest.mark.slow  # Slurm's commands wait for a controller that is not there
def test_a_start_whose_ports_are_taken_is_tried_again(monkeypatch):
    cluster = SlurmCluster(Path(tempfile.mkdtemp(prefix="slurm-")))
    found = free_ports(3)
    with socket.create_server(("", found[0])):
        monkeypatch.setattr(slurm_cluster, "free_ports", lambda count: tries.pop(0))
        tries = [found, free_ports(3)]
        try:
            cluster.start()
            assert cluster.ask("sinfo", "-h", "-t", "idle", "-o", "%D") == "2"
        finally:
            cluster.close()


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
