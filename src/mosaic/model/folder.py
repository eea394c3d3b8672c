"""Removes folders whose content nobody can vouch for: a run's folder belongs to its worker.

A worker can leave folders without permissions, nested deeper than a path or a stack allows, links to anywhere, and
mounted file systems. Everything is done through descriptors: no link is followed, and no other file system is entered.
"""

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

MOST_PROBLEMS = 5  # that are told; a folder can have millions
TRIES = 10
_OnFolder = Callable[[int, str], bool]  # the descriptor of its parent, its name; whether something was removed
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class Removal:
    """What was removed, and what could not be."""

    freed: int = 0  # bytes on disk
    problems: list[str] = field(default_factory=list)

    def note(self, name: str, why: str) -> None:
        shown = name if name.isprintable() else ascii(name)
        problem = f"{shown[:200]} {why}"
        if len(self.problems) < MOST_PROBLEMS and problem not in self.problems:
            self.problems.append(problem)


def remove_folder(path: Path) -> Removal:
    """Remove a folder, or the link or file in its place. What cannot be removed is named and stays."""
    removal = Removal()
    try:
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return removal
        top = open_folder(path)
    except FileNotFoundError:
        return removal
    except OSError as error:
        removal.note(path.name, _why(error))
        return removal
    try:
        # Again if a process that is just ending, such as a tailer, has written something meanwhile.
        for _ in range(TRIES):
            _Emptying(top, removal).run()
            if _is_gone(path, removal) or removal.problems:
                return removal
    finally:
        os.close(top)
    removal.note(path.name, "is not empty: a process is writing into it")
    return removal


def _is_gone(path: Path, removal: Removal) -> bool:
    """Remove an empty folder. False if it is not empty any more."""
    try:
        path.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            return False
        if not removal.problems:
            removal.note(path.name, _why(error))
    return True


def open_folder(path: Path) -> int:
    """A descriptor of a folder, never of one that a link leads to; it gets mode 0700 if it is ours and has less."""
    return _open(path.name, os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC), close=True)


class _Emptying:
    """Empties one folder. A folder in it is emptied too, and the folders in that one are moved up to the top first:

    so two open descriptors are enough for any depth, and no path is ever long.
    """

    def __init__(self, top: int, removal: Removal) -> None:
        self._top = top
        self._removal = removal
        self._mount = _mount_of(top)
        self._prefix = f".moved-{os.urandom(6).hex()}-"
        self._moved = 0

    def run(self) -> None:
        # Again as long as something was removed: folders have been moved up meanwhile.
        while self._pass(self._top, self._remove_folder):
            pass

    def _pass(self, folder: int, on_folder: _OnFolder) -> bool:
        """Go through the entries of a folder once; whether something was removed."""
        has_removed = False
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        has_removed |= on_folder(folder, entry.name)
                    else:
                        self._unlink(folder, entry.name)
                        has_removed = True
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self._removal.note(entry.name, _why(error))
        return has_removed

    def _unlink(self, folder: int, name: str) -> None:
        found = os.lstat(name, dir_fd=folder)
        os.unlink(name, dir_fd=folder)
        self._removal.freed += found.st_blocks * 512

    def _remove_folder(self, top: int, name: str) -> bool:
        inner = _open(name, top)
        try:
            if _mount_of(inner) != self._mount:
                self._removal.note(name, "is a mounted file system (unmount it first)")
                return False
            has_removed = self._pass(inner, self._move_up)
        finally:
            os.close(inner)
        try:
            os.rmdir(name, dir_fd=top)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            return has_removed
        return True

    def _move_up(self, folder: int, name: str) -> bool:
        self._moved += 1
        new = f"{self._prefix}{self._moved}"
        try:
            os.rename(name, new, src_dir_fd=folder, dst_dir_fd=self._top)
        except PermissionError:
            os.close(_open(name, folder))  # to move a folder, it must be writable itself
            os.rename(name, new, src_dir_fd=folder, dst_dir_fd=self._top)
        return True


def _open(name: str, parent: int, close: bool = False) -> int:
    """A descriptor of the folder `name` in `parent`, which is given mode 0700 if it is ours and has less."""
    try:
        try:
            fd = os.open(name, _FOLDER, dir_fd=parent)
        except PermissionError:
            _open_up(name, parent)
            fd = os.open(name, _FOLDER, dir_fd=parent)
        found = os.fstat(fd)
        if found.st_mode & 0o700 != 0o700 and found.st_uid == os.geteuid():
            os.fchmod(fd, 0o700)
        return fd
    finally:
        if close:
            os.close(parent)


def _open_up(name: str, parent: int) -> None:
    # O_PATH needs no permission on the folder itself; /proc names exactly the folder that was opened.
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{fd}", 0o700)
    finally:
        os.close(fd)


def _mount_of(fd: int) -> str:
    """The id of the mount that a descriptor belongs to: unlike its device, it also tells a bind mount apart."""
    with open(f"/proc/self/fdinfo/{fd}") as lines:
        return next((line for line in lines if line.startswith("mnt_id:")), "")


def _why(error: OSError) -> str:
    if error.errno == errno.EBUSY:
        return "is in use, or a file system is mounted there (unmount it first)"
    if error.errno == errno.EPERM:
        return "is immutable or belongs to another user (see: lsattr, ls -l)"
    return f"cannot be removed ({error.strerror})"
