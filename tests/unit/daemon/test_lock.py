"""One daemon per root."""

import os
import subprocess
import sys

import pytest

from mosaic.daemon.lock import DaemonLock
from mosaic.model.errors import AlreadyRunning
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
