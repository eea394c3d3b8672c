"""The first process of a run on a node: what it looks for before it takes the launch."""

import pytest

from mosaic.model.rundir import StateRoot
from mosaic.model.ulid import new_ulid
from mosaic.tail.arrival import _check_room, _missing_environment

TICKET = {"worker": "toy", "install": "mosaic worker install toy --on ray"}


def test_a_node_without_the_workers_environment_names_the_command_that_installs_it(tmp_path):
    root = StateRoot(tmp_path)

    assert _missing_environment(TICKET, root) == (
        f"worker toy is not installed here ({root.envs}/toy). Install it with: mosaic worker install toy --on ray"
    )


@pytest.mark.parametrize("ticket", [{}, TICKET], ids=["same paths as here", "installed"])
def test_nothing_is_missing(tmp_path, ticket):
    root = StateRoot(tmp_path)
    (root.envs / "toy" / "bin").mkdir(parents=True)
    (root.envs / "toy" / "bin" / "python").touch()

    assert _missing_environment(ticket, root) == ""


def test_room_on_the_disk_is_tried_and_nothing_of_that_stays(tmp_path, monkeypatch):
    root = StateRoot(tmp_path)
    root.make()
    run = root.run("runs", new_ulid())
    run.make()
    before = sorted(run.control.iterdir())

    _check_room(run)
    monkeypatch.setattr("mosaic.tail.arrival.LEAST_ROOM", 1 << 62)
    with pytest.raises((OSError, MemoryError, OverflowError)):
        _check_room(run)

    assert sorted(run.control.iterdir()) == before
