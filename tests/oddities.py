"""Things that a worker can put in its folder in the place of a file, and a way to be a user whom modes concern."""

import os
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

ORDINARY = 12345  # a user id that nobody has


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("not empty")


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _passwd(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _socket(path: Path) -> None:
    here = os.open(path.parent, os.O_RDONLY)  # its full name may be too long for a socket
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def _closed(path: Path) -> None:
    path.write_text("{}")
    path.chmod(0)


def _closed_folder(path: Path) -> None:
    _folder(path)
    path.chmod(0)


def _foreign(path: Path) -> None:
    path.write_text("{}")
    if os.geteuid() == 0:
        os.chown(path, ORDINARY, -1)


ODDITIES: dict[str, Callable[[Path], None]] = {
    "fifo": _fifo,
    "folder": _folder,
    "link to itself": _loop,
    "link to /dev/zero": _zero,
    "link to /etc/passwd": _passwd,
    "socket": _socket,
    "sparse file": _sparse,
    "file without mode": _closed,
    "folder without mode": _closed_folder,
    "file of another user": _foreign,
}


def plant(path: Path, oddity: str) -> None:
    """Put the oddity in the place of whatever is at `path` now."""
    if os.path.lexists(path):
        path.rename(path.with_name(f"{path.name}.was"))
    ODDITIES[oddity](path)


def as_ordinary_user(folder: Path, work: Callable[[], None]) -> None:
    """Run `work` in a child process as a user without privileges, who owns `folder`; as this user if it has none."""
    if os.geteuid() != 0:
        work()
        return
    os.chown(folder, ORDINARY, ORDINARY)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(ORDINARY)
            os.setuid(ORDINARY)
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - the edge of the process
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "see the traceback on stderr"
