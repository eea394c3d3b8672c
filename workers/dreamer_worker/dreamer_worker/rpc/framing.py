"""Messages as bytes on a connection.

handshake  greeting + secret, once per connection, from the client
request    length u64 | number u64 | name length u64 | name | payload
answer     length u64 | number u64 | status u64 | payload, or the error's text when status is not 0
payload    Portal's own: a tree of arrays, numbers, texts, bytes and None; never pickle
"""

from __future__ import annotations

import secrets
import socket
import struct
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from portal import packlib

GREETING = "portal_handshake"
MAX_MESSAGE_BYTES = 1 << 30
MAX_NAME_BYTES = 1 << 10  # of the method, with the numbers before it
HANDSHAKE_S = 10
SEND_S = 60  # timeout for a peer that accepts nothing
OK, UNREADABLE, UNKNOWN, FAILED = 0, 2, 3, 4


class RpcError(Exception):
    """The other side failed; the text is its error."""


class Disconnected(Exception):
    """The connection ended before the answer came."""


class Garbage(Exception):
    """Bytes that are not a valid message."""


def make_secret() -> str:
    return secrets.token_hex(16)


def greeting_of(secret: str) -> str:
    """What a client sends first. Portal's option `handshake=` takes the same text."""
    return f"{GREETING}:{secret}"


def pack(tree: Any) -> list[Any]:
    """The buffers of a payload. One that is too large is an error here, instead of endless reconnecting."""
    buffers = list(packlib.pack(_plain(tree)))
    if (size := sum(map(len, buffers))) > MAX_MESSAGE_BYTES - MAX_NAME_BYTES:
        raise ValueError(f"a message of {size} bytes exceeds the limit of {MAX_MESSAGE_BYTES}")
    return buffers


def unpack(payload: memoryview) -> Any:
    """The inverse of `pack`; raises Garbage."""
    # Portal allocates a text with one letter per part that the payload claims; the size of each part takes 8 bytes.
    if 8 * int.from_bytes(payload[:8], "little") > len(payload):
        raise Garbage("a payload that claims more parts than it can hold")
    try:
        return packlib.unpack(payload)
    except Exception as error:  # noqa: BLE001  Portal's parser may raise anything on invalid bytes
        raise Garbage(f"unreadable payload: {error!r}") from None


def _plain(tree: Any) -> Any:
    """What Portal packs: arrays in C order, tuples as lists, numpy scalars as they are."""
    if isinstance(tree, dict):
        return {key: _plain(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_plain(value) for value in tree]
    return np.ascontiguousarray(tree).reshape(tree.shape) if isinstance(tree, np.ndarray) else tree


def u64(number: int) -> bytes:
    return number.to_bytes(8, "little")


def tune(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_S, 0))
    # A machine that is gone is noticed after half a minute.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 4)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def shut(connection: socket.socket) -> None:
    """Shut it down, so that a thread that waits on it wakes up."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def read_within(connection: socket.socket, size: int, limit_s: float) -> bytes:
    """Read `size` bytes within `limit_s` in total: slow bytes do not extend it."""
    until = time.monotonic() + limit_s
    data = b""
    while len(data) < size:
        connection.settimeout(max(1e-3, until - time.monotonic()))
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise ConnectionResetError("the other side closed it")
        data += chunk
    connection.settimeout(None)
    return data


def read_frame(connection: socket.socket) -> memoryview:
    size = int.from_bytes(_read_into(connection, memoryview(bytearray(8))), "little")
    if size > MAX_MESSAGE_BYTES:
        raise Garbage(f"a message of {size} bytes")
    # Not a bytearray, which would be zeroed first.
    return _read_into(connection, np.empty(size, np.uint8).data)


def _read_into(connection: socket.socket, buffer: memoryview) -> memoryview:
    done = 0
    while done < len(buffer):
        count = connection.recv_into(buffer[done:])
        if not count:
            raise ConnectionResetError("the other side closed it")
        done += count
    return buffer


def send_frame(connection: socket.socket, buffers: Iterable[Any]) -> int:
    parts = [memoryview(buffer).cast("B") for buffer in buffers if len(buffer)]
    size = sum(len(part) for part in parts)
    parts.insert(0, memoryview(u64(size)))
    while parts:
        sent = connection.sendmsg(parts[:512])
        while parts and sent >= len(parts[0]):
            sent -= len(parts.pop(0))
        if sent:
            parts[0] = parts[0][sent:]
    return size
