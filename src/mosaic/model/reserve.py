"""Disk space kept for the platform itself: on a full disk a daemon must still start, and runs must still be ended."""

import errno
import os
import shutil
import stat
from pathlib import Path

from mosaic.model.folder import open_folder, remove_folder

PIECES = 16
PIECE_BYTES = 256 << 10  # enough for the files of a start, or for the end of a run
SCARCE_BYTES = 128 << 10  # with less free space a piece is spent
_NAMES = tuple(map(str, range(PIECES)))


class Reserve:
    """A folder of files; one is deleted when space is needed, and all are made again when the disk has plenty.

    In pieces, because other programs may take what is freed: one that writes without end must not get all of it.
    Whatever else lies in the folder or in its place, nothing outside is written or deleted.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def make(self, spare_bytes: int = 3 * PIECES * PIECE_BYTES) -> None:
        """Allocate the pieces that are missing or damaged, as long as `spare_bytes` are left. Never raises."""
        try:
            folder = self._open_or_make()
        except OSError:
            return
        try:
            for name in _NAMES:
                self._make_piece(name, folder, spare_bytes)
        except OSError:
            pass  # a piece that is too small gives back what it has
        finally:
            os.close(folder)

    def spend(self) -> bool:
        """Free one piece; False if there is none."""
        try:
            folder = open_folder(self._folder)
        except OSError:
            return False
        try:
            return any(_delete(name, folder) for name in _NAMES)
        finally:
            os.close(folder)

    def _open_or_make(self) -> int:
        try:
            return open_folder(self._folder)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise
        remove_folder(self._folder)  # a link or a file in its place
        self._folder.mkdir(mode=0o700)
        return open_folder(self._folder)

    def _make_piece(self, name: str, folder: int, spare_bytes: int) -> None:
        if _is_whole(name, folder):
            return
        remove_folder(self._folder / name)  # it may be anything
        if free_bytes(self._folder) >= PIECE_BYTES + spare_bytes:
            allocate(name, PIECE_BYTES, os.O_CREAT | os.O_EXCL, folder)

    def spend_if_scarce(self) -> None:
        try:
            if free_bytes(self._folder.parent) < SCARCE_BYTES:
                self.spend()
        except OSError:
            pass  # there is no such folder yet


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def allocate(path: "Path | str", size: int, flags: int = 0, folder: int | None = None) -> None:
    """Have the file system set aside `size` bytes for the file."""
    fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600, dir_fd=folder)
    try:
        os.posix_fallocate(fd, 0, size)
    finally:
        os.close(fd)


def _is_whole(name: str, folder: int) -> bool:
    try:
        found = os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == PIECE_BYTES


def _delete(name: str, folder: int) -> bool:
    """Delete a piece; False if it held no space."""
    try:
        found = os.lstat(name, dir_fd=folder)
        os.unlink(name, dir_fd=folder)
    except OSError:
        return False  # not there, or a folder
    return stat.S_ISREG(found.st_mode) and found.st_size > 0
