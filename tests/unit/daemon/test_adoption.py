"""Adopting a copied or moved root. What becomes of live processes is tested in tests/faults/test_roots.py."""

import fcntl
import os
import subprocess

import pytest

from mosaic.daemon import adoption
from mosaic.daemon.adoption import adopt
from mosaic.daemon.lock import DaemonLock
from mosaic.daemon.settings import Settings
from mosaic.model.errors import AlreadyRunning, BadRoot
from mosaic.model.place import shift_of
from mosaic.model.root import check_root
from mosaic.model.run import RunConfig, WorkerSpec
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.registry.registry import Registry


@pytest.fixture
def root(tmp_path):
    root = StateRoot(tmp_path / "made")
    check_root(root)
    root.token.write_text("original\n")
    Settings(tcp="127.0.0.1:50055", max_runs=3).save(root)
    return root


@pytest.fixture
def runs(root):
    """Ids: waiting, executing with a GPU, over."""
    registry = Registry.open(root.registry)
    ids = [new_ulid() for _ in range(3)]
    for run_id in ids:
        registry.add(RunConfig(run_id, name="r", area="runs", worker_name="toy", worker=WorkerSpec(module="toy.cli")))
        root.run("runs", run_id).make()
    registry.claim(ids[1], ["GPU-1"])
    registry.move(ids[1], RunState.READY)
    registry.move(ids[1], RunState.EXECUTING)
    registry.move(ids[2], RunState.CANCELLED, "earlier")
    registry.close()
    return ids


@pytest.fixture
def copy(root, runs, tmp_path):
    return copied(root, tmp_path / "copy")


def copied(root, target, *options):
    subprocess.run(["cp", "-a", *options, root.path, target], check=True)
    return StateRoot(target)


@pytest.fixture
def held(root, runs):
    """The lock that the holder of the executing run would hold."""
    rundir = root.run("runs", runs[1])
    with rundir.owner_lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def rows(root):
    registry = Registry.open(root.registry)
    found = {run.run_id: (run.state, run.reason) for run in registry.list()}
    owners = registry.gpu_owners()
    registry.close()
    return found, owners


def test_live_runs_of_a_copy_are_faulted_and_their_gpus_freed(copy, runs):
    done = adopt(copy, "copy")

    waiting, executing, over = runs
    assert rows(copy) == (
        {
            waiting: (RunState.FAULTED, "copied before it started"),
            executing: (RunState.FAULTED, "copied while running"),
            over: (RunState.CANCELLED, "earlier"),
        },
        {},
    )
    assert sorted(done["faulted"]) == sorted([waiting, executing])
    assert shift_of(copy) is None
    check_root(copy)


def test_adopting_a_copy_changes_nothing_in_the_original(root, copy, held):
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in root.path.rglob("*")}

    adopt(copy)

    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in root.path.rglob("*")} == before


def test_a_copy_has_neither_token_nor_address_of_the_original(root, copy):
    copy.address.write_text("{}")
    copy.socket.write_text("")

    adopt(copy)

    assert [path.exists() for path in (copy.token, copy.address, copy.socket)] == [False] * 3
    assert Settings.load(copy) == Settings(max_runs=3)


@pytest.mark.parametrize("link", ["trainer", "trainer/runs", "telemetry", "trainer/registry.db"])
def test_a_copy_made_of_links_is_refused(root, runs, tmp_path, link):
    # `cp -a` of a root whose folders are links: what they lead to belongs to both.
    outside = tmp_path / "outside"
    (root.path / link).rename(outside)
    (root.path / link).symlink_to(outside)
    copy = copied(root, tmp_path / "copy")

    with pytest.raises(BadRoot, match="is a link out of"):
        adopt(copy)

    assert rows(root)[1] == {"GPU-1": runs[1]}


def test_a_copy_made_of_hard_links_is_refused(root, runs, tmp_path):
    copy = copied(root, tmp_path / "copy", "--link")

    with pytest.raises(BadRoot, match="hard link"):
        adopt(copy)

    assert rows(root)[1] == {"GPU-1": runs[1]}


def test_a_copy_is_never_adopted_as_moved(copy, root):
    with pytest.raises(BadRoot, match="was not moved"):
        adopt(copy, "moved")

    assert shift_of(copy)


def test_a_moved_root_keeps_everything_and_leaves_a_link_for_live_runs(root, runs, held, tmp_path):
    moved = StateRoot(root.path.rename(tmp_path / "moved"))

    done = adopt(moved, "moved")

    assert done["continue"] == [runs[1]]
    assert rows(moved)[0][runs[1]][0] is RunState.EXECUTING
    assert moved.token.read_text() == "original\n"
    assert os.readlink(root.path) == str(moved.path)
    assert shift_of(root) is None
    assert shift_of(moved) is None


def test_a_moved_root_without_live_runs_leaves_no_link(root, runs, tmp_path):
    moved = StateRoot(root.path.rename(tmp_path / "moved"))

    adopt(moved)

    assert not os.path.lexists(root.path)


def test_a_root_with_live_holders_is_not_adopted_as_a_copy(root, runs, held, tmp_path):
    moved = StateRoot(root.path.rename(tmp_path / "moved"))

    with pytest.raises(BadRoot, match=f"Run {runs[1]} is alive.*--moved"):
        adopt(moved, "copy")

    assert rows(moved)[0][runs[1]][0] is RunState.EXECUTING


def test_a_root_with_a_daemon_is_not_adopted(root, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(adoption, "LOCK_WITHIN_S", 0.0)
    moved = StateRoot(root.path.rename(tmp_path / "moved"))
    lock = DaemonLock.take(moved)

    with pytest.raises(AlreadyRunning):
        adopt(moved)
    assert lock.is_in_place()


def test_a_root_of_another_machine_is_adopted_as_a_copy(root, runs):
    root.machine_id.write_text("the other one\n")

    with pytest.raises(BadRoot, match=r"another machine.*mosaic root adopt --copy"):
        check_root(root)
    assert adopt(root)["as"] == "copy"

    check_root(root)
    assert rows(root)[0][runs[1]] == (RunState.FAULTED, "copied while running")


def test_a_root_at_its_place_is_not_changed(root, runs):
    assert adopt(root, "copy")["as"] == ""

    assert rows(root)[1] == {"GPU-1": runs[1]}
