"""One daemon per state root: an flock that ends with its process, and a pid file for people to read."""

import fcntl
import os

from mosaic.model.durable import write_bytes
from mosaic.model.errors import AlreadyRunning
from mosaic.model.rundir import StateRoot


class DaemonLock:
    """Held from `take` until the process ends. The kernel releases it, so it is never stale."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def take(cls, root: StateRoot) -> "DaemonLock":
        fd = os.open(root.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise AlreadyRunning(
                f"A daemon (pid {_pid_in(root)}) already serves {root.path}. See: mosaic daemon status"
            ) from None
        write_bytes(root.pid, f"{os.getpid()}\n".encode())
        return cls(fd)


def _pid_in(root: StateRoot) -> str:
    try:
        return root.pid.read_text().strip() or "unknown"
    except OSError:
        return "unknown"
