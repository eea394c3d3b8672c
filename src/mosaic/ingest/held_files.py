"""A run's telemetry file and its -wal, as files: a worker can delete, replace or truncate them in its folder.

An open file stays usable after its name was deleted, so a loss would be noticed only by the next daemon. Comparing the
name with the open file takes two lstat calls.
"""

import logging
import os
import stat
import time
from contextlib import suppress
from enum import Enum
from pathlib import Path

from mosaic.model.errors import StoreFailed

log = logging.getLogger(__name__)

_SUFFIXES = ("", "-wal")
_Identity = tuple[int, int]  # device and inode


class Loss(Enum):
    """What happened to an open file; the value completes "telemetry.sqlite …"."""

    MOVED = "was deleted or replaced"  # everything stored is still in the open file
    CUT = "was truncated"  # it is not


class HeldFiles:
    """The files that a connection has open, compared with those that have their names now."""

    def __init__(self, path: Path) -> None:
        self._paths = [f"{path}{suffix}" for suffix in _SUFFIXES]
        self._known: list[tuple[_Identity, int] | None] = [None, None]  # identity and size; None: not seen yet

    def loss(self) -> "Loss | None":
        """None if all is well. A file that is seen for the first time, or has grown, is remembered."""
        losses = [self._look(place, path) for place, path in enumerate(self._paths)]
        return Loss.CUT if Loss.CUT in losses else Loss.MOVED if Loss.MOVED in losses else None

    @property
    def has_name(self) -> bool:
        """Whether the database, not its -wal, is still the file that has the name."""
        return self._look(0, self._paths[0]) is None and os.path.lexists(self._paths[0])

    def _look(self, place: int, path: str) -> "Loss | None":
        known = self._known[place]
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return Loss.MOVED if known else None
        identity = found.st_dev, found.st_ino
        if known and identity != known[0]:
            return Loss.MOVED
        if known and found.st_size < known[1]:
            return Loss.CUT
        self._known[place] = identity, found.st_size
        return None


def refuse_linked_folder(path: Path) -> None:
    """Before anything is written or moved there: through a link it would happen in a folder that is not the run's."""
    if path.parent.is_symlink():
        raise StoreFailed(f"{path.parent} is a symbolic link; a run's folder must stay where it is. Delete the link.")


def clear_the_way(path: Path) -> None:
    """Move aside what is not a regular file of ours, so that SQLite neither follows a link nor waits for a FIFO."""
    for suffix in _SUFFIXES:
        if _is_odd(f"{path}{suffix}"):
            log.warning("%s%s is not a regular file of this user; it is moved aside.", path, suffix)
            _move_aside(f"{path}{suffix}")
    # With an exclusive lock SQLite would overwrite the start of a planted journal, through any link.
    if _is_odd(f"{path}-journal") or _links(f"{path}-journal") > 1:
        _move_aside(f"{path}-journal")
    for suffix in _SUFFIXES:
        file = Path(f"{path}{suffix}")
        with suppress(PermissionError):
            if file.exists() and not os.access(file, os.R_OK | os.W_OK):
                file.chmod(0o600)  # it is ours, see above


def set_aside(path: Path) -> None:
    """Keep a damaged file under another name. Only the first: a worker must not fill the disk with copies."""
    has_copy = any(path.parent.glob(f"{path.name}.damaged-*"))
    for suffix in (*_SUFFIXES, "-shm", "-journal"):
        if has_copy and not _is_odd(f"{path}{suffix}"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        else:
            _move_aside(f"{path}{suffix}")


def _move_aside(path: str) -> None:
    with suppress(FileNotFoundError):
        os.rename(path, f"{path}.damaged-{time.time_ns()}")


def _is_odd(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid()


def _links(path: str) -> int:
    try:
        return os.lstat(path).st_nlink
    except OSError:
        return 0
