"""Where the daemon listens: always on a Unix socket, and on a loopback TCP port if one is needed."""

import contextlib
import hashlib
import json
import logging
import os
import re
import socket
from pathlib import Path
from typing import Protocol

import grpc

from mosaic import __version__
from mosaic.daemon.settings import DEFAULT_TCP
from mosaic.model import daemon_address
from mosaic.model.durable import read_bytes, read_json, write_on_full_disk
from mosaic.model.errors import AddressTaken, BadRoot, StoreUnavailable
from mosaic.model.rundir import StateRoot

MAX_SOCKET_PATH = 100  # the kernel's limit is 107 bytes
# What gRPC takes literally in `unix:PATH`. In others `#`, `?`, `%41` and `,` are syntax, and `:` is ssh's.
PLAIN_PATH = re.compile(r"[\w./ +@=~-]+")
OPTIONS = [
    # Two daemons must not silently share a port.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.max_send_message_length", 64 << 20),
]
# Every local user can connect to a TCP port. What one connection may cost before its calls have shown a token:
TCP_OPTIONS = [
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", 16 << 20),  # after a token: the longest line of a worker fits
    ("grpc.max_send_message_length", 64 << 20),
    ("grpc.max_allowed_incoming_connections", 256),
    ("grpc.max_concurrent_streams", 32),  # per connection
    ("grpc.http2.lookahead_bytes", 64 << 10),  # received of a call before its message is asked for …
    ("grpc.http2.bdp_probe", 0),  # … which otherwise grows with the speed of the connection
    ("grpc.max_metadata_size", 8 << 10),
    ("grpc.absolute_max_metadata_size", 8 << 10),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 60_000),  # a worker's next call connects again
]
TCP_CALLS = 512  # at the same time, on all connections
# A run on another machine has two connections, for its lines and its link, or three, with those for its files: enough
# for the 500 jobs that a cluster's file allows by default.
NODE_CONNECTIONS = 2048
NODE_CALLS = 8192  # the same for nodes: every live run has a link, and a stream of telemetry while it prints


class MakeServer(Protocol):
    """A server without an address. `is_private`: only this user can reach it; `for_nodes`: other machines can."""

    def __call__(self, is_private: bool, for_nodes: bool = False) -> "grpc.aio.Server": ...


def new_server(guard: "grpc.aio.ServerInterceptor", is_private: bool, for_nodes: bool = False) -> "grpc.aio.Server":
    """A server for the Unix socket, or one with small limits for a TCP port."""
    if is_private:
        return grpc.aio.server(interceptors=[guard], options=OPTIONS)
    if not for_nodes:
        return grpc.aio.server(interceptors=[guard], options=TCP_OPTIONS, maximum_concurrent_rpcs=TCP_CALLS)
    # Not appended: of an option that is given twice gRPC takes the first.
    options = {**dict(TCP_OPTIONS), "grpc.max_allowed_incoming_connections": NODE_CONNECTIONS}
    return grpc.aio.server(interceptors=[guard], options=[*options.items()], maximum_concurrent_rpcs=NODE_CALLS)


log = logging.getLogger(__name__)


class Endpoints:
    """The gRPC servers of one daemon; all have the same service."""

    def __init__(self, root: StateRoot, make_server: MakeServer) -> None:
        self._root = root
        self._make_server = make_server
        self._servers: list[grpc.aio.Server] = []
        self.addresses: list[str] = []
        self.unix = ""
        self.tcp = ""
        self.nodes = ""  # where tailers on other machines reach this daemon; not in daemon.addr

    async def open_unix(self) -> None:
        path = socket_path(self._root)
        try:
            path.unlink(missing_ok=True)  # we hold the daemon's lock, so the socket is stale
        except OSError as error:
            raise BadRoot(f"{path} is in the way of the daemon's socket ({error.strerror}). Remove it.") from None
        _refuse_folder(self._root.address)  # before clients can connect to a daemon that cannot start completely
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

    async def open_nodes(self, address: str, key: bytes, certificate: bytes) -> str:
        """Listen with TLS for tailers on other machines."""
        if not self.nodes:
            refuse_taken(address, "--nodes")
            server = self._make_server(False, for_nodes=True)
            credentials = grpc.ssl_server_credentials([(key, certificate)])
            try:
                port = server.add_secure_port(address, credentials)
            except RuntimeError as error:
                raise AddressTaken(f"{address} is already in use. Choose another address with --nodes.") from error
            await server.start()
            self._servers.append(server)
            self.nodes = f"{address.rpartition(':')[0]}:{port}"
        return self.nodes

    async def close(self) -> None:
        for server in self._servers:
            await server.stop(grace=0.5)
        if _is_ours(self._root.pid):
            for path in (self._root.address, socket_path(self._root), self._root.pid):
                with contextlib.suppress(OSError):  # a folder in its place: said at the start, and not ours to delete
                    path.unlink()

    async def _open(self, address: str) -> str:
        is_private = address.startswith("unix:")
        if not is_private:
            refuse_taken(address)
        server = self._make_server(is_private)
        try:
            port = server.add_insecure_port(address)
        except RuntimeError as error:
            raise AddressTaken(f"{address} is already in use. Choose another address with --tcp.") from error
        await server.start()
        self._servers.append(server)
        if not is_private:
            address = f"{address.rpartition(':')[0]}:{port}"
        self.addresses.append(address)
        self._write()
        return address

    def _write(self) -> None:
        text = json.dumps(self._content(), indent=1)
        _refuse_folder(self._root.address)
        if not write_on_full_disk(self._root.address, f"{text}\n".encode()):
            raise StoreUnavailable(f"{self._root.address} cannot be written. Free some disk space and try again.")

    def _content(self) -> dict[str, object]:
        return daemon_address.encode(self._root, self.addresses, __version__)

    def repair_file(self) -> None:
        """Write daemon.addr again if it is damaged or gone: without it no client would find the daemon."""
        try:
            if self.addresses and read_json(self._root.address, daemon_address.LARGEST_FILE) != self._content():
                self._write()
                log.warning("%s was damaged or deleted; it is written again.", self._root.address)
        except (OSError, BadRoot, StoreUnavailable):
            pass  # a full or failing disk, or a folder in its place; tried again in a second


def socket_path(root: StateRoot) -> Path:
    """`daemon.sock` in the root, or a socket in a private folder if that path is too long or not plain."""
    if _is_usable(root.socket):
        return root.socket
    base = _runtime_folder()
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A symbolic link must be ours too: any user can create one in /tmp.
    if {base.lstat().st_uid, base.stat().st_uid} != {os.getuid()} or base.stat().st_mode & 0o077:
        raise AddressTaken(f"{base} is not a private folder of this user. Set MOSAIC_HOME to a shorter path.")
    return base / f"{daemon_address.FALLBACK}{hashlib.sha256(os.fsencode(root.path)).hexdigest()[:16]}.sock"


def _is_usable(path: Path) -> bool:
    return len(os.fsencode(path)) <= MAX_SOCKET_PATH and PLAIN_PATH.fullmatch(str(path)) is not None


def _runtime_folder() -> Path:
    named = Path(os.environ.get("XDG_RUNTIME_DIR") or "")
    is_usable = named.is_absolute() and _is_usable(named / f"{daemon_address.FALLBACK}{'0' * 16}.sock")
    return named if is_usable else Path(f"/tmp/mosaic-{os.getuid()}")


def _refuse_folder(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        raise BadRoot(f"{path} is a folder. Remove it.")


def _is_ours(pid_file: Path) -> bool:
    """False if the root was deleted meanwhile and another daemon serves a new one in its place."""
    try:
        return read_bytes(pid_file, 64).strip() == str(os.getpid()).encode()
    except OSError:
        return False


def refuse_taken(address: str, option: str = "--tcp") -> None:
    """AddressTaken if a TCP address cannot be bound now."""
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), int(port)))
        except OSError as error:
            raise AddressTaken(
                f"{address} cannot be bound ({error.strerror}). Choose another address with {option}."
            ) from error
