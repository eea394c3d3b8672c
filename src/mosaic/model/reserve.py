"""Disk space kept for the platform itself: on a full disk a daemon must still start, and runs must still be ended."""

import os
import shutil
from pathlib import Path

PIECES = 16
PIECE_BYTES = 256 << 10  # enough for the files of a start, or for the end of a run
SCARCE_BYTES = 128 << 10  # with less free space a piece is spent


class Reserve:
    """A folder of files; one is deleted when space is needed, and all are made again when the disk has plenty.

    In pieces, because other programs may take what is freed: one that writes without end must not get all of it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def make(self, spare_bytes: int = 3 * PIECES * PIECE_BYTES) -> None:
        """Allocate the pieces that are missing, as long as `spare_bytes` are left. Never raises."""
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            for number in range(PIECES):
                piece = self._folder / str(number)
                if not piece.exists() and free_bytes(self._folder) >= PIECE_BYTES + spare_bytes:
                    allocate(piece, PIECE_BYTES, os.O_CREAT | os.O_EXCL)
        except OSError:
            pass  # a piece that is too small gives back what it has

    def spend(self) -> bool:
        """Free one piece; False if there is none."""
        try:
            for name in os.listdir(self._folder):
                (self._folder / name).unlink()
                return True
        except OSError:
            pass
        return False

    def spend_if_scarce(self) -> None:
        try:
            if free_bytes(self._folder.parent) < SCARCE_BYTES:
                self.spend()
        except OSError:
            pass  # there is no such folder yet


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def allocate(path: Path, size: int, flags: int = 0) -> None:
    """Have the file system set aside `size` bytes for the file."""
    fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    try:
        os.posix_fallocate(fd, 0, size)
    finally:
        os.close(fd)
