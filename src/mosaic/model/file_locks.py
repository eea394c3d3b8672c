"""Finds which process holds a lock, without taking it: the kernel says so, whatever the files of a run say."""

import os
from pathlib import Path


def is_locked(path: Path) -> bool:
    return bool(lock_holders(path))


def lock_holder(path: Path) -> int:
    """The pid that holds the lock; 0 if it is free or held by a process outside our pid namespace."""
    return next(iter(lock_holders(path)), 0)


def lock_holders(path: Path) -> list[int]:
    """The pids in the kernel's entries for the lock; 0 for a process outside our pid namespace.

    Trying the lock could make a daemon or holder that is just starting give up. Entries are compared by inode alone,
    because some file systems have another device in them than in `stat`; so more than one may match.
    """
    try:
        inode = os.stat(path).st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return []
    held = [line.split() for line in lines if " FLOCK " in line and "->" not in line]
    # 1: FLOCK  ADVISORY  WRITE 4242 fd:01:131073 0 EOF
    return [int(words[4]) for words in held if int(words[5].rpartition(":")[2]) == inode]
