"""One daemon per state root: an flock that ends with its process, and a pid file for people to read."""

import fcntl
import os

from mosaic.model.durable import read_bytes, write_on_full_disk
from mosaic.model.errors import AlreadyRunning, BadRoot
from mosaic.model.rundir import StateRoot


class DaemonLock:
    """Held from `take` until the process ends. The kernel releases it, so it is never stale."""

    def __init__(self, root: StateRoot, fd: int) -> None:
        self._path = root.lock
        self._fd = fd

    @classmethod
    def take(cls, root: StateRoot) -> "DaemonLock":
        fd = _open(root)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise AlreadyRunning(
                f"A daemon (pid {_pid_in(root)}) already serves {root.path}. See: mosaic daemon status"
            ) from None
        try:
            write_on_full_disk(root.pid, f"{os.getpid()}\n".encode())  # for people to read; the lock is what counts
        except IsADirectoryError:
            raise BadRoot(f"{root.pid} is a folder. Remove it.") from None
        return cls(root, fd)

    def is_in_place(self) -> bool:
        """False once the root, or this file, was removed, moved or replaced: another daemon may then serve the path."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self._path, follow_symlinks=False))
        except FileNotFoundError:
            return False
        except OSError:
            return True  # a failing disk proves nothing


def _open(root: StateRoot) -> int:
    try:
        return os.open(root.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise BadRoot(f"{root.lock} cannot be opened ({error.strerror}). Remove what is there.") from error


def _pid_in(root: StateRoot) -> str:
    try:
        text = read_bytes(root.pid, 64).decode().strip()
    except (OSError, ValueError):
        return "unknown"
    return text if text.isdecimal() else "unknown"
