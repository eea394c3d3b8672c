"""The platform's one atomic write (temporary file, fsync, rename, fsync of the folder), and reading files safely.

A worker can put anything under any name in its folder: a FIFO, a folder, a link to /dev/zero, a sparse file of 1 TB.
So whatever is read from there is opened by `open_regular`, and of bounded size.

Standard library only, and little of that: the holder imports it.
"""

import errno
import json
import os
import stat
from io import BufferedWriter
from typing import Any

LARGEST_JSON = 16 << 20
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
_NOT_OURS = (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EINVAL, errno.EACCES, errno.EPERM, errno.EFBIG)


class Replacement:
    """`with Replacement(path) as file:` writes a file beside `path` that takes its place at the end of the block.

    After an error, or a crash at any point, `path` holds its old bytes; after the block it durably holds the new ones.
    The umask applies to `mode`. A writer that needs a name instead of a file object finds it in `file.name`.
    """

    def __init__(self, path: "str | os.PathLike[str]", mode: int = 0o600, syncs_folder: bool = True) -> None:
        """Without `syncs_folder` the caller calls `sync_folder`, once for many files."""
        self._path = os.fspath(path)
        self._syncs_folder = syncs_folder
        self._temp = f"{self._path}.{os.getpid()}.tmp"
        self._mode = mode

    def __enter__(self) -> BufferedWriter:
        try:
            os.unlink(self._temp)  # of a process that had our pid, or a FIFO that a worker put there
        except FileNotFoundError:
            pass
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
        if is_replaced and self._syncs_folder:
            sync_folder(os.path.dirname(self._path))

    def _open(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_EXCL, self._mode)


def write_bytes(path: "str | os.PathLike[str]", data: bytes, mode: int = 0o600) -> None:
    """Replace the content of `path` by `data`; after a crash it has the old bytes or the new ones, never a part."""
    with Replacement(path, mode) as file:
        file.write(data)


def write_on_full_disk(path: "str | os.PathLike[str]", data: bytes) -> bool:
    """Like `write_bytes`, but on a full disk into the old file, which needs no new block; False if there is none.

    For small files that the next start replaces anyway: a crash in between may leave a part of them.
    """
    try:
        write_bytes(path, data)
        return True
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        is_whole = os.pwrite(fd, data, 0) == len(data)
        os.ftruncate(fd, len(data) if is_whole else 0)
        return is_whole
    except OSError:
        return False
    finally:
        os.close(fd)


def insist_on_json(path: "str | os.PathLike[str]", value: Any) -> None:
    """`write_json` where a worker may have changed the folder's mode, or put a folder of its own under this name."""
    try:
        write_json(path, value)
    except (IsADirectoryError, PermissionError):
        make_way(path)
        write_json(path, value)


def make_way(path: "str | os.PathLike[str]") -> None:
    """Make it possible to create a file `path`: its folder gets mode 0700, what is not a regular file moves aside."""
    folder, found = os.path.dirname(path), None
    if os.lstat(folder).st_mode & 0o700 != 0o700:
        os.chmod(folder, 0o700)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        os.rename(path, f"{os.fspath(path)}.{os.getpid()}.{os.urandom(4).hex()}.moved")
    elif found.st_mode & 0o600 != 0o600:
        os.chmod(path, 0o600)


def write_json(path: "str | os.PathLike[str]", value: Any, mode: int = 0o600, syncs_folder: bool = True) -> None:
    text = json.dumps(value, indent=1)
    if len(text) >= LARGEST_JSON:  # a long list: one line for each number makes it many times as large
        text = json.dumps(value)
    with Replacement(path, mode, syncs_folder) as file:
        file.write(text.encode() + b"\n")


def open_regular(
    path: "str | os.PathLike[str]",
    flags: int = os.O_RDONLY,
    *,
    below: "str | os.PathLike[str]" = "",
    any_owner: bool = False,
) -> int:
    """A descriptor of `path`, which must be a regular file of this user; raises OSError for anything else, at once.

    No symbolic link is followed at the end of the path, nor anywhere between the folder `below` and its end.
    """
    folder = _open_folder(os.path.dirname(path), below) if below else None
    try:
        # O_NONBLOCK: opening a FIFO would wait for a writer that never comes, and a leased file for its owner.
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        fd = os.open(path if folder is None else os.path.basename(path), flags, 0o600, dir_fd=folder)
    finally:
        if folder is not None:
            os.close(folder)
    try:
        _check_regular(fd, path, any_owner)
    except OSError:
        os.close(fd)
        raise
    return fd


def open_lock(path: "str | os.PathLike[str]") -> int:
    """A descriptor of the lock file `path`, created if it is missing. Whatever else has its name moves aside."""
    flags = os.O_RDWR | os.O_CREAT
    try:
        return open_regular(path, flags)
    except OSError as error:
        if error.errno not in _NOT_OURS:
            raise
    make_way(path)
    return open_regular(path, flags)


def open_log(path: "str | os.PathLike[str]") -> int:
    """A descriptor that appends to `path`; to /dev/null if that is impossible: a process can run without its log."""
    try:
        return open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def read_bytes(
    path: "str | os.PathLike[str]",
    limit: int,
    *,
    below: "str | os.PathLike[str]" = "",
    any_owner: bool = False,
) -> bytes:
    """The content of a regular file of this user (`open_regular`); OSError if it has more than `limit` bytes."""
    with open(open_regular(path, below=below, any_owner=any_owner), "rb") as file:
        # The size first, so that nothing is read of a file that is too large; but it may grow while it is read.
        is_large = os.fstat(file.fileno()).st_size > limit
        data = b"" if is_large else file.read(limit + 1)
    if is_large or len(data) > limit:
        raise OSError(errno.EFBIG, f"has more than {limit:,} bytes", os.fspath(path))
    return data


def read_tail(path: "str | os.PathLike[str]", count: int, *, below: "str | os.PathLike[str]" = "") -> bytes:
    """At most the last `count` bytes of a regular file of this user (`open_regular`), however large it is."""
    fd = open_regular(path, below=below)
    try:
        return os.pread(fd, count, max(0, os.fstat(fd).st_size - count))
    finally:
        os.close(fd)


def read_json(
    path: "str | os.PathLike[str]", limit: int = LARGEST_JSON, *, any_owner: bool = False
) -> "dict[str, Any] | None":
    """The object in `path`; None without a readable regular file of this user that is a whole JSON object.

    An error that may pass, such as EIO or too many open files, is raised.
    """
    try:
        value = json.loads(read_bytes(path, limit, any_owner=any_owner))
    except (ValueError, RecursionError):
        return None
    except OSError as error:
        if error.errno in _NO_FILE or error.errno in _NOT_OURS:
            return None
        raise
    return value if isinstance(value, dict) else None


def move_below(path: "str | os.PathLike[str]", top: "str | os.PathLike[str]", parts: "list[str]") -> None:
    """Move a file that is on the disk to its place below `top`, whose folders are made.

    No link is followed on the way: the folders are opened one by one.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(top, flags)
    try:
        for name in parts[:-1]:
            try:
                os.mkdir(name, 0o700, dir_fd=folder)
            except FileExistsError:
                pass
            inner = os.open(name, flags, dir_fd=folder)
            os.close(folder)
            folder = inner
        os.replace(path, parts[-1], dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        os.close(folder)


def sync_folder(path: str) -> None:
    fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _open_folder(path: str, below: "str | os.PathLike[str]") -> int:
    """A descriptor of the folder `path`, reached from `below` without following a link."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(below, flags)
    for name in os.path.relpath(path, below).split(os.sep):
        try:
            inner = os.open(name, flags, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _check_regular(fd: int, path: "str | os.PathLike[str]", any_owner: bool) -> None:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", os.fspath(path))
    if status.st_uid != os.geteuid() and not any_owner:
        raise OSError(errno.EPERM, "belongs to another user", os.fspath(path))
