"""Files that matter are written whole: temp, fsync, rename, fsync of the folder. Standard library only."""

import json
import os
from typing import Any


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
        with open(path, "rb") as file:
            value = json.loads(file.read())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def sync_folder(path: str) -> None:
    fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
