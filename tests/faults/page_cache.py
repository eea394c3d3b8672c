"""What a power cut would lose: pages of a file that are in memory and not on the disk (cachestat, Linux 6.5)."""

import ctypes
import os
import tempfile
from pathlib import Path

_CACHESTAT = 451
_syscall = ctypes.CDLL(None, use_errno=True).syscall


class _Range(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]  # 0, 0: the whole file


class _Pages(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")]


def dirty_pages(path: Path) -> int:
    """How many pages of the file are not on the disk; 0 also where the kernel does not report it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    pages = _Pages()
    try:
        refused = _syscall(_CACHESTAT, fd, ctypes.byref(_Range(0, 0)), ctypes.byref(pages), 0)
    finally:
        os.close(fd)
    return 0 if refused else int(pages.dirty + pages.writeback)


def is_supported() -> bool:
    """Whether this kernel and the file system of temporary files report what is not on the disk."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(10_000))
        file.flush()
        return dirty_pages(Path(file.name)) > 0
