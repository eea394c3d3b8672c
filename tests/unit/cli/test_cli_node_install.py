"""`mosaic worker install --on`: which clusters take it, and what is printed."""

import pytest

from mosaic.catalog.install import InstallRequest
from mosaic.catalog.progress import Progress
from mosaic.cli.node_install import install_on_nodes, print_installs, refuse_failed
from mosaic.engines.node_install import Install
from mosaic.model.errors import BadConfig, MosaicError
from mosaic.model.rundir import StateRoot


@pytest.mark.parametrize(
    ("on", "words"),
    [("slurm", "omit --on"), ("ray", 'Write environments = "node" into .*ray.toml'), ("mars", "no cluster 'mars'")],
)
def test_a_cluster_that_would_not_use_the_environment_is_refused(tmp_path, on, words):
    with pytest.raises(BadConfig, match=words):
        install_on_nodes(StateRoot(tmp_path), on, InstallRequest("toy"), Progress())


def test_each_node_has_a_line_and_those_that_failed_are_named(capsys):
    made = {"name": "toy", "version": "1", "python": "3.11.7", "is_new": True, "folder": "/e/toy", "size_bytes": 2000}
    good = Install("a", "j-0", result=made)
    bad = Install("b", "j-1", problem="the disk is full", lines=["error: no space"])

    print_installs([good, bad])
    with pytest.raises(MosaicError, match=r"toy was not installed on b\. .* mosaic worker install toy --on ray$"):
        refuse_failed([good, bad], "toy", "ray")

    out, err = capsys.readouterr()
    assert out == "a: toy 1, Python 3.11.7, is installed: /e/toy, 2.0 kB.\n"
    assert err.splitlines() == ["  b: error: no space", "b: the disk is full"]
