"""A file system of 24 MB, for tests of a full disk."""

import contextlib
import ctypes
import os

import pytest

LIBC = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def small_disk(folder):
    """Mounted at this folder. Only root can do that: for others the test is skipped."""
    if os.getuid() or LIBC.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=24m"):
        pytest.skip("only root can mount a small file system")
    try:
        yield
    finally:
        LIBC.umount2(os.fsencode(folder), 2)


def fill(path):
    with open(path, "ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
