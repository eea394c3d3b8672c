"""Processes, read from /proc."""

import ctypes
import os
import signal
from typing import List, Set

_PR_SET_CHILD_SUBREAPER = 36


def subreaper(on: bool) -> None:
    """Whether orphaned descendants become our children, so that none can hide behind a double fork."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


def children() -> Set[int]:
    return {pid for pid in pids() if _stat(pid)[1:2] == [str(os.getpid())]}


def naming(mark: str) -> Set[int]:
    """Those whose environment or command line contains `mark`."""
    text = mark.encode()
    return {pid for pid in pids() if text in _read(f"/proc/{pid}/environ") + _read(f"/proc/{pid}/cmdline")}


def pids() -> List[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def lives(pid: int) -> bool:
    return _stat(pid)[:1] not in ([], ["Z"], ["X"])


def command_of(pid: int) -> str:
    return _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()[:80]


def end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def _stat(pid: int) -> List[str]:
    """The fields after the process name: state, parent …"""
    return _read(f"/proc/{pid}/stat").decode(errors="replace").rpartition(")")[2].split()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
