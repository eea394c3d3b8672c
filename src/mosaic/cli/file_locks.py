"""Finds which process holds a lock, without taking it."""

import os
from pathlib import Path


def is_locked(path: Path) -> bool:
    return _holder_line(path) is not None


def lock_holder(path: Path) -> int:
    """The pid that holds the lock; 0 if it is free or held by a process outside our pid namespace."""
    line = _holder_line(path)
    return int(line.split()[4]) if line else 0


def _holder_line(path: Path) -> str | None:
    """The kernel's entry for the lock. Trying the lock could make a daemon or holder that is just starting give up."""
    try:
        inode = os.stat(path).st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    held = (line for line in lines if " FLOCK " in line and "->" not in line)
    return next((line for line in held if _inode(line) == inode), None)


def _inode(line: str) -> int:
    # 1: FLOCK  ADVISORY  WRITE 4242 fd:01:131073 0 EOF
    return int(line.split()[5].rpartition(":")[2])
