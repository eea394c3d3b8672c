"""What the doctor knows of nodes: the disk and locks that they share, their clocks, and their way to the daemon."""

import sys
import time

import pytest

from mosaic.cli import doctor_nodes
from mosaic.cli.doctor_checks import Installation
from mosaic.cli.doctor_clusters import _check_reach, _remedy
from mosaic.cli.doctor_nodes import check_clocks, check_locks, check_nodes, check_shared
from mosaic.engines.cluster import Cluster
from mosaic.model.durable import write_json
from mosaic.model.states import RunState

RUN = "01JCQ5W2ZK8M3N4P5Q6R7S8T9W"


@pytest.fixture
def mounted(root, tmp_path):
    """A table of mounts in which the state folder is on NFS with these options."""

    def mounted(options="rw,vers=4.2,local_lock=none", more=""):
        table = tmp_path / "mounts"
        table.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/home {root.path} nfs4 {options} 0 0\n{more}")
        return table

    return mounted


@pytest.mark.parametrize(
    ("options", "named"),
    [("rw,local_lock=none", ""), ("rw,nolock", "nolock"), ("rw,local_lock=flock,hard", "local_lock=flock")],
)
def test_a_mount_without_locks_is_found(root, mounted, options, named):
    found = list(check_locks(root, mounted(options)))

    assert [finding.what for finding in found] == ([f"{root.path} is mounted with {named}."] if named else [])


def test_options_of_a_local_disk_are_nobodys_concern(root, tmp_path):
    table = tmp_path / "mounts"
    table.write_text("/dev/sda / ext4 rw,nolock 0 0\n")

    assert list(check_locks(root, table)) == list(check_shared(root, table)) == []


def test_what_the_nodes_start_must_be_on_a_shared_disk_too(root, mounted, tmp_path):
    (root.envs / "near").mkdir(parents=True)
    (tmp_path / "local" / "bin").mkdir(parents=True)
    (root.envs / "far").symlink_to(tmp_path / "local")

    found = [finding.what for finding in check_shared(root, mounted())]

    assert f"The worker environment far is on a disk of this machine: {tmp_path}/local" in found
    assert not [what for what in found if "environment near" in what]
    assert any(what.startswith("The Python of MOSAIC is on a disk of this machine") for what in found)


def test_a_python_of_the_system_is_taken_for_granted(root, mounted, monkeypatch):
    monkeypatch.setattr(sys, "prefix", "/usr")
    monkeypatch.setattr(doctor_nodes, "__file__", "/usr/lib/python3/mosaic/cli/doctor_nodes.py")

    assert list(check_shared(root, mounted())) == []


def test_nothing_of_it_is_asked_without_a_cluster(root):
    assert list(check_nodes(Installation(root))) == []


@pytest.mark.parametrize(
    ("ahead_s", "taken", "words"),
    [(0, True, ""), (5, False, ""), (95, True, "95 s ahead"), (-400, True, "400 s behind"), (95, False, "95 s ahead")],
)
def test_a_wrong_clock_of_a_node_is_found(root, ahead_s, taken, words):
    run = root.run("runs", RUN)
    run.make()
    now = time.time()
    write_json(run.started, {"node": "node7", "started_at": now + ahead_s, **({"taken_at": now} if taken else {})})

    found = list(check_clocks(Installation(root, states={RUN: RunState.EXECUTING})))

    assert len(found) == bool(words)
    assert not words or found[0].what.startswith(f"The clock of node7 is {words}.")


def test_clocks_of_runs_that_are_over_and_of_this_machine_are_not_compared(root):
    run = root.run("runs", RUN)
    run.make()
    write_json(run.started, {"node": "node7", "started_at": 0.0})

    assert list(check_clocks(Installation(root, states={RUN: RunState.TERMINATED}))) == []

    write_json(run.started, {"started_at": 0.0})
    assert list(check_clocks(Installation(root, states={RUN: RunState.EXECUTING}))) == []


@pytest.mark.parametrize(
    ("listens_at", "reach", "nodes", "is_found"),
    [
        ("127.0.0.1:5000", "", {"node1": "node1"}, True),
        ("127.0.0.1:5000", "", {"node1": "10.0.0.7"}, True),
        ("127.0.0.1:5000", "login:6000", {"node1": "10.0.0.7"}, False),
        ("127.0.0.1:5000", "", {"node1": "127.0.0.1", "node2": "localhost"}, False),
        ("10.0.0.5:5000", "", {"node1": "10.0.0.7"}, False),
        ("", "", {"node1": "10.0.0.7"}, False),
    ],
)
def test_a_daemon_on_loopback_is_not_reached_by_other_machines(listens_at, reach, nodes, is_found):
    found = list(_check_reach(Cluster("slurm", reach=reach), listens_at, nodes, "See."))

    assert [finding.what for finding in found] == (
        ["Node node1 of the cluster 'slurm' cannot reach the daemon."] if is_found else []
    )


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("scontrol: munge encode failed: Failed to access socket", "munge does not run"),
        ("squeue: Protocol authentication error", "munge does not run"),
        ("squeue: munge_decode: Rewound credential", "The clock of"),
        ("squeue: Incompatible versions of client and server code", "version does not fit"),
        ("squeue: Unable to contact slurm controller (connect failure)", "slurmctld"),
    ],
)
def test_slurms_errors_have_remedies(message, words):
    assert words in _remedy(message)
