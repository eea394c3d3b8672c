"""Small files in a run's folder. Its worker can write them, so nothing about them is trusted."""

import json
import os
import stat
from typing import Any

MOST_BYTES = 64 * 1024


def read_run_file(path: "str | os.PathLike[str]", most_bytes: int = MOST_BYTES) -> bytes:
    """The content of a regular file of this user; empty for anything else, such as a symbolic link or a FIFO."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        status = os.fstat(fd)
        is_good = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_size <= most_bytes
        with os.fdopen(os.dup(fd), "rb") as file:
            return file.read(most_bytes) if is_good else b""
    except OSError:
        return b""
    finally:
        os.close(fd)


def read_run_json(path: "str | os.PathLike[str]", most_bytes: int = MOST_BYTES) -> dict[str, Any] | None:
    """The JSON object in such a file; None if there is none."""
    data = read_run_file(path, most_bytes)
    try:
        content = json.loads(data) if data else None
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
