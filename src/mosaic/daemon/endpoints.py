"""Where the daemon listens: always on a Unix socket, and on a loopback TCP port if one is needed."""

import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import grpc

from mosaic.daemon.settings import DEFAULT_TCP
from mosaic.model.durable import write_json
from mosaic.model.errors import AddressTaken
from mosaic.model.rundir import StateRoot

MAX_SOCKET_PATH = 100  # the kernel's limit is 107 bytes
OPTIONS = [
    # Two daemons must not silently share a port.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.max_send_message_length", 64 << 20),
]


class Endpoints:
    """The gRPC servers of one daemon; all have the same service."""

    def __init__(self, root: StateRoot, make_server: Callable[[], "grpc.aio.Server"]) -> None:
        self._root = root
        self._make_server = make_server
        self._servers: list[grpc.aio.Server] = []
        self.addresses: list[str] = []
        self.unix = ""
        self.tcp = ""

    async def open_unix(self) -> None:
        path = socket_path(self._root)
        path.unlink(missing_ok=True)  # we hold the daemon's lock, so the socket is stale
        self.unix = await self._open(f"unix:{path}")

    async def open_tcp(self, address: str) -> str:
        """Listen on `address`. The bound address is written to daemon.addr and passed to workers."""
        if not self.tcp:
            self.tcp = await self._open(address)
        return self.tcp

    async def open_any_tcp(self) -> str:
        """Listen on the default port, or on a free one if it is in use."""
        try:
            return await self.open_tcp(DEFAULT_TCP)
        except AddressTaken:
            return await self.open_tcp("127.0.0.1:0")

    async def close(self) -> None:
        for server in self._servers:
            await server.stop(grace=0.5)
        if _is_ours(self._root.pid):
            for path in (self._root.address, socket_path(self._root), self._root.pid):
                path.unlink(missing_ok=True)

    async def _open(self, address: str) -> str:
        if not address.startswith("unix:"):
            refuse_taken(address)
        server = self._make_server()
        try:
            port = server.add_insecure_port(address)
        except RuntimeError as error:
            raise AddressTaken(f"{address} is already in use. Choose another address with --tcp.") from error
        await server.start()
        self._servers.append(server)
        if not address.startswith("unix:"):
            address = f"{address.rpartition(':')[0]}:{port}"
        self.addresses.append(address)
        write_json(self._root.address, {"version": 1, "addresses": self.addresses})
        return address


def socket_path(root: StateRoot) -> Path:
    """`daemon.sock` in the root, or a socket in a private folder if that path is too long."""
    if len(os.fsencode(root.socket)) <= MAX_SOCKET_PATH:
        return root.socket
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/mosaic-{os.getuid()}")
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A symbolic link must be ours too: any user can create one in /tmp.
    if {base.lstat().st_uid, base.stat().st_uid} != {os.getuid()} or base.stat().st_mode & 0o077:
        raise AddressTaken(f"{base} is not a private folder of this user. Set MOSAIC_HOME to a shorter path.")
    return base / f"mosaic-{hashlib.sha256(os.fsencode(root.path)).hexdigest()[:16]}.sock"


def _is_ours(pid_file: Path) -> bool:
    """False if the root was deleted meanwhile and another daemon serves a new one in its place."""
    try:
        return pid_file.read_text().strip() == str(os.getpid())
    except OSError:
        return False


def refuse_taken(address: str) -> None:
    """AddressTaken if a TCP address cannot be bound now."""
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), int(port)))
        except OSError as error:
            raise AddressTaken(
                f"{address} cannot be bound ({error.strerror}). Choose another address with --tcp."
            ) from error
