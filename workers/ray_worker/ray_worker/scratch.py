"""A private temporary folder with a short path: Ray's sockets are in it, and a socket's path has at most 107 bytes.

It is removed at the end of the run. A run that was killed leaves it behind; the next run with this worker removes it,
because the lock in it is free then.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator

PREFIX = "mosaic-ray-"
_LOCK = "lock"
# Below the folder: session_2026-11-17_23-39-52_418123_30608/sockets/plasma_store.
_LONGEST = 107 - 60


@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
    home = _home()
    _remove_orphans(home)
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=home)  # mode 0700
    lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _home() -> str:
    given = tempfile.gettempdir()
    return given if len(os.fsencode(given)) + len(PREFIX) + 10 <= _LONGEST else "/tmp"


def _remove_orphans(home: str) -> None:
    for name in os.listdir(home):
        folder = os.path.join(home, name)
        if name.startswith(PREFIX) and _is_mine(folder) and _is_orphaned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_mine(folder: str) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False  # removed meanwhile
    return found.st_uid == os.getuid() and os.path.isdir(folder) and not os.path.islink(folder)


def _is_orphaned(folder: str) -> bool:
    """Whether its lock exists and nobody holds it. A folder without one was created just now."""
    try:
        lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
