"""The kernel reuses pids: a process that got the pid of a dead one is not taken for it and not killed."""

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
    """A sleeping process with this pid."""
    wanted = ctypes.c_int32(pid)
    args = CloneArgs(exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(wanted), set_tid_size=1)
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
    """A run whose holder was killed while there was no daemon; it and the pids of holder and tree."""
    run = lab.submit(steps=1_000_000, rate=100)
    lab.wait_for(run, S.EXECUTING)
    started = read_json(RunDir(run.run_dir).started)
    pids = [started["holder_pid"], started["root_pid"]]
    lab.kill_daemon()
    os.kill(pids[0], signal.SIGKILL)
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), words="holder and tree to exit")
    return run, pids


def test_processes_with_the_pids_of_a_dead_run_survive_and_the_run_is_found_dead(lab, orphaned):
    run, (holder, root) = orphaned
    with innocent(holder), innocent(root):
        lab.restart_daemon()

        end = lab.wait_until_over(run)

        assert end.state is S.FAULTED
        assert end.reason.startswith("holder died")
        assert alive(holder)
        assert alive(root)


def test_a_daemon_starts_although_another_process_has_its_predecessors_pid(lab):
    pid = lab.daemon_pid()
    lab.kill_daemon()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)  # a pid is free only after its parent, which is this test, has waited for it
    with innocent(pid):
        lab.restart_daemon()

        assert lab.client.health().pid != pid
        assert alive(pid)
