"""Files that matter are written whole: temp, fsync, rename, fsync of the folder. Standard library only."""

import errno
import json
import os
import stat
from typing import Any

_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)  # nothing, a link to itself, a socket


def write_bytes(path: "str | os.PathLike[str]", data: bytes, mode: int = 0o600) -> None:
    """Replace `path` by `data`; after a crash it holds the old bytes or the new ones, never a part."""
    path = os.fspath(path)
    temp = f"{path}.{os.getpid()}.tmp"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        try:
            _write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temp, path)
    except OSError:
        os.unlink(temp)
        raise
    sync_folder(os.path.dirname(path))


def write_json(path: "str | os.PathLike[str]", value: Any, mode: int = 0o600) -> None:
    write_bytes(path, json.dumps(value, indent=1).encode() + b"\n", mode)


def read_json(path: "str | os.PathLike[str]") -> "dict[str, Any] | None":
    """The object in `path`; None when the file does not exist or is not a whole JSON object."""
    try:
        value = json.loads(_read_all(path))
    except (ValueError, RecursionError):
        return None
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise
    return value if isinstance(value, dict) else None


def sync_folder(path: str) -> None:
    fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _read_all(path: "str | os.PathLike[str]") -> bytes:
    """The bytes of a regular file; none of anything else: a worker can put a FIFO or a device into its folder."""
    # O_NONBLOCK: opening a FIFO would wait for a writer that never comes, and the daemon with it.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(fd).st_mode) else b""


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
