"""daemon.addr: where the daemon of a root listens, written by the daemon, read by clients and tailers.

{"version": 1, "addresses": ["unix:/…/daemon.sock", "127.0.0.1:50055"], "root": {"path": …, "inode": …}, "mosaic": …}
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from mosaic.model import durable
from mosaic.model.place import Place
from mosaic.model.rundir import StateRoot

LARGEST_FILE = 64 << 10
LONGEST_ADDRESS = 256
FALLBACK = "mosaic-"  # how the name of a socket outside the root begins


class DaemonAddress(NamedTuple):
    addresses: Sequence[str] = ()  # the Unix socket first
    mosaic: str = ""  # the daemon's version; empty in a file of an older daemon


def encode(root: StateRoot, addresses: Sequence[str], mosaic: str) -> dict[str, object]:
    return {"version": 1, "addresses": list(addresses), "root": Place.of(root).to_dict(), "mosaic": mosaic}


def read_address(root: StateRoot) -> DaemonAddress:
    """The addresses of the daemon of this root; none if the file is missing, damaged, or a copy of another root's."""
    found = durable.read_json(root.address, LARGEST_FILE) or {}
    addresses, mosaic = found.get("addresses"), found.get("mosaic", "")
    if not isinstance(addresses, list) or not all(map(_is_address, addresses)) or not isinstance(mosaic, str):
        return DaemonAddress()
    if not _is_of(root, Place.read(found.get("root")), addresses):
        return DaemonAddress()
    return DaemonAddress(addresses, mosaic[:64])


def _is_address(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_ADDRESS and value.isprintable()


def _is_of(root: StateRoot, served: Place | None, addresses: Sequence[str]) -> bool:
    if served:
        # By inode alone if the paths differ: a bind mount shows the same folder under a second path.
        return served.inode == _inode(root) and (served.path == _path(root) or _is_same(served, root))
    # An older daemon did not write its root, but its socket is there, or has a name that only this path leads to.
    sockets = [address.removeprefix("unix:") for address in addresses if address.startswith("unix:")]
    return any(os.path.basename(one).startswith(FALLBACK) or _is_in(root, one) for one in sockets)


def _is_in(root: StateRoot, socket: str) -> bool:
    return os.path.realpath(os.path.dirname(socket)) == os.path.realpath(root.socket.parent)


def _path(root: StateRoot) -> str:
    return os.path.realpath(root.path)


def _inode(root: StateRoot) -> int:
    try:
        return os.stat(root.path).st_ino
    except OSError:
        return 0


def _is_same(served: Place, root: StateRoot) -> bool:
    try:
        return os.path.samefile(served.path, root.path)
    except OSError:
        return False
