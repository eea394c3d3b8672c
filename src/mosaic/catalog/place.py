"""`envs/` as a place where environments appear whole or not at all.

envs/
  <worker>[@variant]/     an environment; mosaic.json in it says how it was made
  .new-<pid>/             one that is being made; a killed install leaves it, the next one removes it
  .old-<name>/            the one before, for the moment between two renames (where the kernel cannot exchange them)
  .answers/               what the workers said of themselves
  .lock                   held while something is being changed
"""

import ctypes
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mosaic.catalog.progress import Progress
from mosaic.catalog.uv import InstallFailed
from mosaic.model import procfs

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def changing(envs: Path, progress: Progress) -> Iterator[None]:
    """One change at a time; what a killed one left is put right first."""
    envs.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(envs / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait_for(fd, progress)
        _tidy(envs)
        yield
    finally:
        os.close(fd)


def tidy_now(envs: Path) -> None:
    """Put right what a killed change left; BlockingIOError when one is at work now, which does it itself."""
    fd = os.open(envs / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _tidy(envs)
    finally:
        os.close(fd)


def new_folder(envs: Path) -> Path:
    return envs / f".new-{os.getpid()}"


def put(new: Path, final: Path) -> None:
    """`new` becomes `final`. A kill at any moment leaves the old one or the new one there, whole."""
    refuse_if_used(final)
    if not final.exists():
        new.rename(final)
        return
    if not _exchange(new, final):
        old = final.with_name(f".old-{final.name}")
        final.rename(old)  # a kill between these two is put right by the next look: see _tidy
        new.rename(final)
        new = old
    shutil.rmtree(new, ignore_errors=True)


def remove(folder: Path) -> None:
    refuse_if_used(folder)
    # Out of sight in one step; a kill while the files go leaves no half environment under its name.
    gone = folder.with_name(f".new-gone-{folder.name}")
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def refuse_if_used(folder: Path) -> None:
    pids = users_of(folder)
    if pids:
        shown = ", ".join(map(str, pids[:4])) + (" …" if len(pids) > 4 else "")
        raise InstallFailed(
            f"{folder.name} is in use by {len(pids)} process{'es' if len(pids) > 1 else ''} (pid {shown}), "
            "which would find other modules than it started with. Wait for its runs, or end them: mosaic runs"
        )


def users_of(folder: Path) -> list[int]:
    """Processes whose program or environment lies in `folder`."""
    inside, variable = f"{folder}/".encode(), f"VIRTUAL_ENV={folder}".encode()
    others = [pid for pid in procfs.pids() if pid != os.getpid()]
    return sorted(
        pid for pid in others if procfs.command_line(pid)[0].startswith(inside) or variable in procfs.environment(pid)
    )


def _wait_for(fd: int, progress: Progress) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        progress.phase("Waiting for another install to end")
        fcntl.flock(fd, fcntl.LOCK_EX)


def _tidy(envs: Path) -> None:
    for old in envs.glob(".old-*"):
        final = envs / old.name.removeprefix(".old-")
        if final.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(final)
    for new in envs.glob(".new-*"):
        shutil.rmtree(new, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step of the kernel; False where this file system cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    if libc.renameat2(_AT_FDCWD, bytes(one), _AT_FDCWD, bytes(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        return False
    raise OSError(code, os.strerror(code), str(one))
