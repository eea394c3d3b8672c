"""The platform's one atomic write (temporary file, fsync, rename, fsync of the folder), and reading JSON safely.

Standard library only, and little of that: the holder imports it.
"""

import errno
import json
import os
import stat
from io import BufferedWriter
from typing import Any

_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)  # missing, a link to itself, a socket


class Replacement:
    """`with Replacement(path) as file:` writes a file beside `path` that takes its place at the end of the block.

    After an error, or a crash at any point, `path` holds its old bytes; after the block it durably holds the new ones.
    The umask applies to `mode`. A writer that needs a name instead of a file object finds it in `file.name`.
    """

    def __init__(self, path: "str | os.PathLike[str]", mode: int = 0o600) -> None:
        self._path = os.fspath(path)
        self._temp = f"{self._path}.{os.getpid()}.tmp"
        self._mode = mode

    def __enter__(self) -> BufferedWriter:
        self._file = open(self._temp, "wb", opener=self._open)
        return self._file

    def __exit__(self, kind: object, *_: object) -> None:
        is_replaced = False
        try:
            with self._file:
                if kind is None:
                    self._file.flush()
                    os.fsync(self._file.fileno())
            if kind is None:
                os.replace(self._temp, self._path)
                is_replaced = True
        finally:
            if not is_replaced:
                os.unlink(self._temp)
        if is_replaced:
            sync_folder(os.path.dirname(self._path))

    def _open(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NOFOLLOW, self._mode)


def write_bytes(path: "str | os.PathLike[str]", data: bytes, mode: int = 0o600) -> None:
    """Replace the content of `path` by `data`; after a crash it has the old bytes or the new ones, never a part."""
    with Replacement(path, mode) as file:
        file.write(data)


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
    """The bytes of a regular file, and none of anything else: a worker can put a FIFO or a device into its folder."""
    # O_NONBLOCK: opening a FIFO would wait for a writer that never comes, and the daemon with it.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(fd).st_mode) else b""
