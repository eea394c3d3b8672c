"""`envs/`, in which environments appear complete or not at all.

envs/
  <worker>[@variant]/     an environment; mosaic.json in it says how it was created
  .new-<pid>/             one that is being created; a killed install leaves it, the next one removes it
  .old-<name>/            the previous one, between two renames (where the kernel cannot exchange them)
  .answers/               the cached descriptors of the workers
  .lock                   held during a change
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
from mosaic.model.names import VALID, is_environment_name

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def changing(envs: Path, progress: Progress) -> Iterator[None]:
    """One change at a time. First repairs what a killed one left."""
    envs.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(envs / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait_for(fd, progress)
        _tidy(envs)
        yield
    finally:
        os.close(fd)


def tidy_now(envs: Path) -> None:
    """Repair what a killed change left. BlockingIOError during another change, which does that itself."""
    fd = os.open(envs / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _tidy(envs)
    finally:
        os.close(fd)


def new_folder(envs: Path) -> Path:
    return envs / f".new-{os.getpid()}"


def folder_of(envs: Path, name: str) -> Path:
    """The folder of an environment that is about to be created, always a direct child of `envs`."""
    if not is_environment_name(name):
        raise InstallFailed(f"{name!r} is not a valid name for an environment. {VALID}")
    return envs / name


def put(new: Path, final: Path) -> None:
    """Rename `new` to `final`. A kill at any moment leaves the old one or the new one, complete."""
    refuse_if_used(final)
    if not os.path.lexists(final):
        new.rename(final)
        return
    if not _exchange(new, final):
        old = final.with_name(f".old-{final.name}")
        final.rename(old)  # after a kill between these two, _tidy repairs it
        new.rename(final)
        new = old
    delete(new)


def remove(folder: Path) -> None:
    refuse_if_used(folder)
    # Renamed first: a kill during the deletion leaves no incomplete environment under its name.
    gone = folder.with_name(f".new-gone-{folder.name}")
    delete(gone)
    folder.rename(gone)
    delete(gone)


def delete(folder: Path) -> None:
    """Delete what is at this path. Of a link only the link: what it points to is not ours."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def refuse_if_used(folder: Path) -> None:
    pids = users_of(folder)
    if pids:
        shown = ", ".join(map(str, pids[:4])) + (" …" if len(pids) > 4 else "")
        raise InstallFailed(
            f"{folder.name} is in use by {len(pids)} process{'es' if len(pids) > 1 else ''} (pid {shown}), "
            "whose modules would change while they run. Wait for its runs, or cancel them: mosaic runs"
        )


def users_of(folder: Path) -> list[int]:
    """Processes whose program or environment is in `folder`."""
    inside, variable = f"{folder}/".encode(), f"VIRTUAL_ENV={folder}".encode()
    others = [pid for pid in procfs.pids() if pid != os.getpid()]
    return sorted(
        pid for pid in others if procfs.command_line(pid)[0].startswith(inside) or variable in procfs.environment(pid)
    )


def _wait_for(fd: int, progress: Progress) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        progress.phase("Waiting for another install to finish")
        fcntl.flock(fd, fcntl.LOCK_EX)


def _tidy(envs: Path) -> None:
    for old in envs.glob(".old-*"):
        final = envs / old.name.removeprefix(".old-")
        if os.path.lexists(final):
            delete(old)
        else:
            old.rename(final)
    for new in envs.glob(".new-*"):
        delete(new)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders atomically; False if this file system cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    if libc.renameat2(_AT_FDCWD, bytes(one), _AT_FDCWD, bytes(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        return False
    raise OSError(code, os.strerror(code), str(one))
