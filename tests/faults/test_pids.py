"""A pid is no name: the kernel gives it to somebody else. Nobody who got a dead process's pid is blamed or killed."""

import contextlib
import ctypes
import os
import signal

import pytest
from lab import alive, wait_until

from mosaic.model.durable import read_json
from mosaic.model.rundir import RunDir
from mosaic.model.states import RunState

S = RunState
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE3 = 435  # the same number on every architecture

CLONE_FIELDS = (
    *("flags", "pidfd", "child_tid", "parent_tid", "exit_signal"),
    *("stack", "stack_size", "tls", "set_tid", "set_tid_size"),
)


class CloneArgs(ctypes.Structure):
    """struct clone_args of clone(2)."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in CLONE_FIELDS)


@contextlib.contextmanager
def innocent(pid):
    """A sleeping process with this very pid."""
    wished = ctypes.c_int32(pid)
    args = CloneArgs(exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(wished), set_tid_size=1)
    child = LIBC.syscall(CLONE3, ctypes.byref(args), ctypes.sizeof(args))
    if child == 0:
        os.execv("/bin/sleep", ["sleep", "1000"])
    if child < 0:
        pytest.skip(f"no process can be given a pid here: {os.strerror(ctypes.get_errno())}")
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.fixture
def orphaned(lab):
    """A run whose holder was killed while no daemon was there; it and the pids of holder and tree."""
    run = lab.submit(steps=1_000_000, rate=100)
    lab.wait_for(run, S.EXECUTING)
    started = read_json(RunDir(run.run_dir).started)
    pids = [started["holder_pid"], started["root_pid"]]
    lab.kill_daemon()
    os.kill(pids[0], signal.SIGKILL)
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), words="the end of holder and tree")
    return run, pids


def test_those_who_got_the_pids_of_a_dead_run_live_on_and_the_run_is_told_dead(lab, orphaned):
    run, (holder, root) = orphaned
    with innocent(holder), innocent(root):
        lab.restart_daemon()

        end = lab.wait_until_over(run)

        assert end.state is S.FAULTED
        assert end.reason.startswith("holder died")
        assert alive(holder)
        assert alive(root)


def test_a_daemon_starts_beside_a_process_that_got_its_predecessors_pid(lab):
    pid = lab.daemon_pid()
    lab.kill_daemon()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)  # a pid is free only when its parent, which is us, has been told
    with innocent(pid):
        lab.restart_daemon()

        assert lab.client.health().pid != pid
        assert alive(pid)
