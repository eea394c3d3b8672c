"""One daemon per root."""

import os
import shutil
import subprocess
import sys

import pytest

from mosaic.daemon.lock import DaemonLock
from mosaic.model.errors import AlreadyRunning, BadRoot
from mosaic.model.rundir import StateRoot

HOLD = """
import sys
from mosaic.daemon.lock import DaemonLock
from mosaic.model.rundir import StateRoot
lock = DaemonLock.take(StateRoot(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path):
    root = StateRoot(tmp_path)
    root.make()
    return root


@pytest.fixture
def other(root):
    """Another process that holds the lock until it is killed."""
    command = [sys.executable, "-c", HOLD, str(root.path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_daemon_learns_the_pid_of_the_first(root, other):
    with pytest.raises(AlreadyRunning, match=f"pid {other.pid}"):
        DaemonLock.take(root)

    assert root.pid.read_text() == f"{other.pid}\n"


def test_the_lock_of_a_killed_daemon_is_free(root, other):
    other.kill()
    other.wait()

    lock = DaemonLock.take(root)

    assert root.pid.read_text() == f"{os.getpid()}\n"
    del lock


def test_a_lock_without_a_pid_file_is_still_held(root, other):
    root.pid.unlink()

    with pytest.raises(AlreadyRunning, match="pid unknown"):
        DaemonLock.take(root)


def test_the_lock_is_not_inherited_by_children(root):
    lock = DaemonLock.take(root)

    assert not os.get_inheritable(lock._fd)


def test_a_lock_is_out_of_place_when_its_root_is_moved_removed_or_replaced(root, tmp_path_factory):
    away = tmp_path_factory.mktemp("away") / "root"
    lock = DaemonLock.take(root)
    assert lock.is_in_place()

    root.path.rename(away)
    assert not lock.is_in_place()
    root.make()
    other = DaemonLock.take(root)
    assert not lock.is_in_place()
    assert other.is_in_place()
    shutil.rmtree(root.path)
    away.rename(root.path)
    assert lock.is_in_place()


@pytest.mark.parametrize("name", ["lock", "pid"])
def test_a_folder_in_place_of_its_files_is_named(root, name):
    getattr(root, name).mkdir()

    with pytest.raises(BadRoot, match=str(getattr(root, name))):
        DaemonLock.take(root)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * 1_000_000, b"12\n34"])
def test_garbage_in_the_pid_file_is_not_shown(root, other, content):
    root.pid.write_bytes(content)

    with pytest.raises(AlreadyRunning, match=r"\(pid unknown\)"):
        DaemonLock.take(root)
