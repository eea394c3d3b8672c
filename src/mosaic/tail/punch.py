"""Two uses of fallocate that Python's os lacks: free a part of a file, and grow it without ever truncating it."""

import ctypes
import os

_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_fallocate = ctypes.CDLL(None, use_errno=True).fallocate
_fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def punch(fd: int, start: int, end: int) -> None:
    """Free the bytes [start, end); they read as NUL afterwards, and all other offsets stay the same."""
    _call(fd, _PUNCH_HOLE | _KEEP_SIZE, start, end - start)


def grow(fd: int, size: int) -> None:
    """Make the file at least `size` bytes long. Unlike ftruncate, this cannot cut off bytes appended meanwhile."""
    _call(fd, 0, size - 1, 1)


def _call(fd: int, mode: int, start: int, length: int) -> None:
    if _fallocate(fd, mode, start, length):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
