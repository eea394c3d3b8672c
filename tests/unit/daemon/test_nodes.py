"""What is told about a cluster at submit, from the file that it has then."""

import asyncio
import os

import pytest

from mosaic.daemon.nodes import Nodes
from mosaic.daemon.settings import Settings
from mosaic.dispatch.local_launcher import LocalLauncher
from mosaic.dispatch.ray_launcher import RayLauncher
from mosaic.dispatch.slurm_launcher import SlurmLauncher
from mosaic.model.errors import BadConfig
from mosaic.model.rundir import StateRoot
from mosaic.submit.config import read_config

SCONTROL = """#!/bin/sh
[ "$SLURM_CONF" = /right.conf ] || { echo "scontrol: fatal: Could not establish a configuration source" >&2; exit 1; }
echo "KillWait                = 30 sec"
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    command = tmp_path / "bin" / "scontrol"
    command.parent.mkdir()
    command.write_text(SCONTROL)
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    root = StateRoot(tmp_path / "root")
    root.make()
    root.clusters.mkdir()
    return root


@pytest.fixture
def nodes(root):
    return Nodes(root, None, LocalLauncher(), Settings())


def config(grace_s):
    worker = {"module": "toy_worker.cli"}
    return read_config({"metadata": {"worker": worker}, "payload": {"on": "slurm", "limits": {"grace_s": grace_s}}})


def test_a_file_that_is_written_after_an_error_is_used_at_the_next_submit(nodes, root):
    with pytest.raises(BadConfig, match=r"configuration source\. If slurm\.conf is elsewhere, set `conf` in .*slurm"):
        asyncio.run(nodes.note(config(10)))

    (root.clusters / "slurm.toml").write_text('conf = "/right.conf"\n')

    assert asyncio.run(nodes.note(config(10))) == ""
    assert "KillWait is 30 s" in asyncio.run(nodes.note(config(40)))


def test_a_cluster_keeps_its_launcher_until_it_has_another_engine(nodes, root):
    first = nodes.launcher("slurm")
    (root.clusters / "slurm.toml").write_text('conf = "/right.conf"\n')
    asyncio.run(nodes.note(config(10)))

    assert isinstance(first, SlurmLauncher)
    assert nodes.launcher("slurm") is first

    (root.clusters / "slurm.toml").write_text('engine = "ray"\n')
    asyncio.run(nodes.note(config(10)))

    assert isinstance(nodes.launcher("slurm"), RayLauncher)
