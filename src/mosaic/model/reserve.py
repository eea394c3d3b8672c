"""Disk space kept for the platform itself: on a full disk a daemon must still start, and runs must still be ended."""

import os
from pathlib import Path

RESERVE_BYTES = 4 << 20
SCARCE_BYTES = 1 << 20  # with less free space the reserve is spent


class Reserve:
    """A file that is deleted when its space is needed, and made again when the disk has plenty."""

    def __init__(self, path: Path, size: int = RESERVE_BYTES) -> None:
        self._path = path
        self._size = size

    def make(self) -> None:
        """Allocate the file, unless it exists or the disk is nearly full. Never raises."""
        try:
            if self._path.exists() or free_bytes(self._path.parent) < 4 * self._size:
                return
            allocate(self._path, self._size, os.O_CREAT | os.O_EXCL)
        except OSError:
            self.spend()  # a part of it helps nobody

    def spend(self) -> bool:
        """Free its space; False if there was none."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

    def spend_if_scarce(self) -> None:
        try:
            if free_bytes(self._path.parent) < SCARCE_BYTES:
                self.spend()
        except OSError:
            pass  # there is no such folder yet


def free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def allocate(path: Path, size: int, flags: int = 0) -> None:
    """Have the file system set aside `size` bytes for the file."""
    fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    try:
        os.posix_fallocate(fd, 0, size)
    finally:
        os.close(fd)
