"""The two things Python's os cannot ask of a file: free a part of it, and grow it without ever cutting it."""

import ctypes
import os

_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_fallocate = ctypes.CDLL(None, use_errno=True).fallocate
_fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def punch(fd: int, start: int, end: int) -> None:
    """Free bytes [start, end); they read as NUL afterwards, and every other offset stays what it was."""
    _call(fd, _PUNCH_HOLE | _KEEP_SIZE, start, end - start)


def grow(fd: int, size: int) -> None:
    """Make the file at least `size` bytes long. Unlike ftruncate it cannot cut what was appended meanwhile."""
    _call(fd, 0, size - 1, 1)


def _call(fd: int, mode: int, start: int, length: int) -> None:
    if _fallocate(fd, mode, start, length):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
