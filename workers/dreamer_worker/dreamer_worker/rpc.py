"""Calls between the processes, in Portal's format; the only importer of portal.

    handshake  greeting + secret, once per connection, from the client
    request    length u64 | number u64 | name length u64 | name | payload
    answer     length u64 | number u64 | status u64 | payload, or the error's text when status is not 0
    payload    Portal's own: a tree of arrays, numbers, texts, bytes and None; never pickle

A plain `portal.Client` or `portal.Server` with the same handshake understands it. The sockets are ours, because
Portal's poll (a blocked process takes a seventh of a core), bind every interface and end the process at a bad packet.
"""

from __future__ import annotations

import errno
import hmac
import itertools
import logging
import queue
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from portal import packlib

log = logging.getLogger(__name__)

GREETING = "portal_handshake"
MAX_MESSAGE_BYTES = 1 << 30
HANDSHAKE_S = 10
SEND_S = 60  # a peer that takes nothing for so long is given up
BACKOFF_S = (0.05, 0.1, 0.2, 0.5)
OK, UNREADABLE, UNKNOWN, FAILED = 0, 2, 3, 4


class RpcError(Exception):
    """The other side could not do what it was asked; its own words."""


class Disconnected(Exception):
    """The connection ended before the answer came."""


class Garbage(Exception):
    """Bytes that are no message."""


def make_secret() -> str:
    return secrets.token_hex(16)


def greeting_of(secret: str) -> str:
    """What a client says first. Portal's option `handshake=` takes the same text."""
    return f"{GREETING}:{secret}"


def free_address(host: str = "127.0.0.1") -> str:
    """An address that nobody has at this moment.

    Not a port that the kernel gives to outgoing connections: one of these could take it while its server restarts.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        try:
            with socket.create_server((host, port)):
                return f"{host}:{port}"
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


def split_address(address: str) -> tuple[str, int]:
    """Host and port; without a host it is this machine only."""
    host, _, port = str(address).rpartition(":")
    return host or "127.0.0.1", int(port)


class Server:
    """Answers calls at one address. Its promises:

    1. Each method has threads of its own: one that waits keeps no other waiting, and requests to a method with one
       thread are handled in the order in which they came.
    2. Whatever a peer sends, it goes on: without the secret nothing is parsed, and garbage ends that connection only.
    3. Nothing runs while nobody calls.
    """

    def __init__(self, address: str, secret: str, name: str = "server") -> None:
        self.name = name
        self.on_leave: Callable[[int], None] = lambda peer: None
        self._greeting = greeting_of(secret).encode()
        self._methods: dict[str, _Method] = {}
        self._peers: dict[int, _Peer] = {}
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._is_open = True
        self._traffic = Traffic()
        self._socket = socket.create_server(split_address(address), backlog=512)
        host, port = self._socket.getsockname()[:2]
        self.address = f"{host}:{port}"

    def bind(self, name: str, work: Callable[..., Any], threads: int = 1) -> None:
        """`work(*args)` answers; with `threads=0` in the connection's own thread: for what never waits."""
        self._methods[name] = _Method(name, lambda reply, *args: reply(work(*args)), threads)

    def bind_deferred(self, name: str, work: Callable[..., None]) -> None:
        """`work(reply, *args)` sees that `reply` is called at some time, by any thread; it must not wait itself."""
        self._methods[name] = _Method(name, work, 0)

    def start(self) -> Server:
        _thread(self._accept, f"{self.name}-accept")
        return self

    def close(self) -> None:
        self._is_open = False
        _shut(self._socket)  # wakes who waits in accept
        self._socket.close()
        with self._lock:
            peers = list(self._peers.values())
        for peer in peers:
            _shut(peer.socket)
        for method in self._methods.values():
            method.close()

    @property
    def peers(self) -> int:
        return len(self._peers)

    def stats(self) -> dict[str, float]:
        return {**self._traffic.rates(), "connections": len(self._peers)}

    def _accept(self) -> None:
        while self._is_open:
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                if self._is_open:
                    log.warning("%s cannot accept a connection: %s", self.name, error)
                    time.sleep(BACKOFF_S[-1])  # too many open files: wait until some are closed
                continue
            _thread(self._serve, f"{self.name}-peer", connection)

    def _serve(self, connection: socket.socket) -> None:
        peer = _Peer(next(self._numbers), connection, self._traffic)
        try:
            _tune(connection)
            self._check_greeting(connection)
            with self._lock:
                self._peers[peer.number] = peer
            while self._is_open:
                self._take(peer, _read_frame(connection))
        except (OSError, Garbage) as error:
            log.debug("%s: connection %d ended: %s", self.name, peer.number, error)
        finally:
            connection.close()
            with self._lock:
                known = self._peers.pop(peer.number, None)
            if known:
                self.on_leave(peer.number)

    def _check_greeting(self, connection: socket.socket) -> None:
        connection.settimeout(HANDSHAKE_S)
        if not hmac.compare_digest(_read(connection, len(self._greeting)), self._greeting):
            raise Garbage("not our greeting")
        connection.settimeout(None)

    def _take(self, peer: _Peer, frame: memoryview) -> None:
        self._traffic.received(len(frame))
        if len(frame) < 16:
            raise Garbage("shorter than any request")
        reply = Reply(peer, bytes(frame[:8]))
        size = int.from_bytes(frame[8:16], "little")
        try:
            name = bytes(frame[16 : 16 + size]).decode()
            args = packlib.unpack(frame[16 + size :])
            method = self._methods.get(name)
        except Exception as error:  # the parser of a foreign format: it may raise anything
            reply.fail("Could not decode message", UNREADABLE)
            raise Garbage(f"unreadable request: {error!r}") from None
        if method is None:
            reply.fail(f"Unknown method {name}", UNKNOWN)
        else:
            method.take(reply, args)


class Reply:
    """The way back to one caller; to one who has left it leads nowhere."""

    def __init__(self, peer: _Peer, number: bytes) -> None:
        self._peer = peer
        self._number = number

    @property
    def peer(self) -> int:
        return self._peer.number

    def __call__(self, result: Any = None) -> None:
        self._peer.send(self._number, _u64(OK), *packlib.pack(_plain(result)))

    def fail(self, text: str, status: int = FAILED) -> None:
        self._peer.send(self._number, _u64(status), text.encode())


class _Method:
    """A bound function with its threads."""

    def __init__(self, name: str, work: Callable[..., None], threads: int) -> None:
        self._name = name
        self._work = work
        self._queue: queue.SimpleQueue[tuple[Reply, Any] | None] = queue.SimpleQueue()
        self._threads = [_thread(self._run, f"rpc-{name}") for _ in range(threads)]

    def take(self, reply: Reply, args: Any) -> None:
        if self._threads:
            self._queue.put((reply, args))
        else:
            self._answer(reply, args)

    def close(self) -> None:
        for _ in self._threads:
            self._queue.put(None)

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            self._answer(*job)

    def _answer(self, reply: Reply, args: Any) -> None:
        try:
            self._work(reply, *args)
        except Disconnected as error:  # what it works with is being closed
            reply.fail(str(error))
        except Exception as error:  # the edge: the caller is told, the server goes on
            log.exception("%s failed", self._name)
            reply.fail(f"Error in server method: {type(error).__name__}: {error}")


class _Peer:
    """One connection, on the server's side."""

    def __init__(self, number: int, connection: socket.socket, traffic: Traffic) -> None:
        self.number = number
        self.socket = connection
        self._sending = threading.Lock()
        self._traffic = traffic

    def send(self, *buffers: Any) -> None:
        try:
            with self._sending:
                self._traffic.sent(_send_frame(self.socket, buffers))
        except OSError as error:
            log.debug("connection %d took no answer: %s", self.number, error)
            _shut(self.socket)


@dataclass
class _Call:
    """A request that waits for its answer."""

    buffers: list[Any]
    future: Future[Any] = field(default_factory=Future)
    sent_on: int = 0  # the number of the connection that it went over


class Client:
    """Calls the server at an address. Its promises:

    1. At most `max_inflight` calls wait for an answer; the next one blocks its caller, asleep.
    2. It reconnects by itself for as long as it takes. With `resend`, unanswered calls are sent again in their order,
       so a call may be executed twice; without it they raise Disconnected.
    3. Nothing runs while nothing is asked or answered.
    """

    def __init__(self, address: str, secret: str, max_inflight: int = 16, resend: bool = True) -> None:
        self.address = address
        self._greeting = greeting_of(secret).encode()
        self._max_inflight = max_inflight
        self._resends = resend
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._waiting: dict[bytes, _Call] = {}
        self._numbers = itertools.count()
        self._socket: socket.socket | None = None
        self._connection = 0
        self._closed = threading.Event()
        self._answered = False
        self._traffic = Traffic()
        self._thread = _thread(self._run, f"rpc-client-{address}")

    def call(self, method: str, *args: Any) -> Future[Any]:
        """Ask; the future has the answer."""
        name = method.encode()
        buffers = [_u64(len(name)), name, *packlib.pack(_plain(args))]
        started = time.perf_counter()
        call = self._register(buffers)
        self._traffic.waited(time.perf_counter() - started)
        with self._sending:
            self._send(call)
        return call.future

    def ask(self, method: str, *args: Any, timeout_s: float | None = None) -> Any:
        """Ask and wait for the answer."""
        return self.call(method, *args).result(timeout_s)

    def wait_connected(self, timeout_s: float | None = None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._socket is not None or self._closed.is_set(), timeout_s)

    def drain(self, timeout_s: float | None = None) -> bool:
        """Wait until everything asked so far is answered."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, timeout_s)

    def stats(self) -> dict[str, float]:
        return {**self._traffic.rates(), "inflight": len(self._waiting)}

    def close(self) -> None:
        with self._changed:
            self._closed.set()
            if self._socket:
                _shut(self._socket)
        self._fail_waiting()

    def _register(self, buffers: list[Any]) -> _Call:
        number = _u64(next(self._numbers))
        call = _Call([number, *buffers])
        with self._changed:
            self._changed.wait_for(self._may_ask)
            if self._closed.is_set() or not (self._resends or self._socket):
                raise Disconnected(f"{self.address} is not connected")
            self._waiting[number] = call
        return call

    def _may_ask(self) -> bool:
        lost = not (self._resends or self._socket)
        return len(self._waiting) < self._max_inflight or self._closed.is_set() or lost

    def _send(self, call: _Call) -> None:
        """Over the present connection, unless it went over it already; without one it waits for the next."""
        connection = self._socket
        if connection is None or call.sent_on == self._connection:
            return
        call.sent_on = self._connection
        try:
            self._traffic.sent(_send_frame(connection, call.buffers))
        except OSError:
            _shut(connection)  # the reading thread finds out and connects anew

    def _run(self) -> None:
        failures = 0
        while not self._closed.is_set():
            self._answered = False
            connection = self._connect()
            if connection:
                self._use(connection)
            failures = 0 if self._answered else failures + 1
            if failures:
                self._closed.wait(BACKOFF_S[min(failures, len(BACKOFF_S)) - 1])

    def _connect(self) -> socket.socket | None:
        try:
            connection = socket.create_connection(split_address(self.address), timeout=HANDSHAKE_S)
            if connection.getsockname() == connection.getpeername():
                connection.close()  # nobody listens, and the kernel has connected us to ourselves
                return None
            connection.sendall(self._greeting)
            connection.settimeout(None)
            _tune(connection)
            return connection
        except OSError:
            return None

    def _use(self, connection: socket.socket) -> None:
        try:
            self._resume(connection)
            while True:
                self._settle(_read_frame(connection))
        except (OSError, Garbage) as error:
            log.debug("the connection to %s ended: %s", self.address, error)
        finally:
            self._lose(connection)

    def _resume(self, connection: socket.socket) -> None:
        with self._sending:
            with self._changed:
                if self._closed.is_set():
                    raise OSError("closed")
                self._socket = connection
                self._connection += 1
                waiting = list(self._waiting.values())
                self._changed.notify_all()
            for call in waiting:
                self._send(call)

    def _settle(self, frame: memoryview) -> None:
        if len(frame) < 16:
            raise Garbage("shorter than any answer")
        self._traffic.received(len(frame))
        number = bytes(frame[:8])
        if number not in self._waiting:
            return  # the second answer to a call that was sent twice
        status = int.from_bytes(frame[8:16], "little")
        result, error = None, None
        if status:
            error = RpcError(bytes(frame[16:]).decode(errors="replace"))
        else:
            try:
                result = packlib.unpack(frame[16:])
            except Exception as broken:  # the parser of a foreign format: it may raise anything
                raise Garbage(f"unreadable answer: {broken!r}") from None
        self._answered = True
        with self._changed:
            call = self._waiting.pop(number, None)
            self._changed.notify_all()
        if call is not None:  # else somebody has closed us meanwhile, and told its caller
            _resolve(call.future, result, error)

    def _lose(self, connection: socket.socket) -> None:
        with self._changed:
            self._socket = None
            self._changed.notify_all()
        connection.close()
        if not self._resends:
            self._fail_waiting()

    def _fail_waiting(self) -> None:
        with self._changed:
            lost, self._waiting = list(self._waiting.values()), {}
            self._changed.notify_all()
        for call in lost:
            _resolve(call.future, None, Disconnected(f"the connection to {self.address} ended"))


class Traffic:
    """Counts messages and bytes, and tells them as rates since it was last asked."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._counts = dict.fromkeys(("sent", "received", "sent_bytes", "received_bytes", "wait_s"), 0.0)

    def sent(self, size: int) -> None:
        self._counts["sent"] += 1
        self._counts["sent_bytes"] += size

    def received(self, size: int) -> None:
        self._counts["received"] += 1
        self._counts["received_bytes"] += size

    def waited(self, seconds: float) -> None:
        self._counts["wait_s"] += seconds

    def rates(self) -> dict[str, float]:
        now = time.monotonic()
        counts, self._counts = self._counts, dict.fromkeys(self._counts, 0.0)
        elapsed, self._since = max(1e-9, now - self._since), now
        return {f"{name}_rate": count / elapsed for name, count in counts.items()}


def _resolve(future: Future[Any], result: Any, error: Exception | None) -> None:
    if not future.set_running_or_notify_cancel():
        return
    if error:
        future.set_exception(error)
    else:
        future.set_result(result)


def _plain(tree: Any) -> Any:
    """What Portal packs: arrays in C order, tuples as lists, numpy scalars as they are."""
    if isinstance(tree, dict):
        return {key: _plain(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_plain(value) for value in tree]
    return np.ascontiguousarray(tree).reshape(tree.shape) if isinstance(tree, np.ndarray) else tree


def _u64(number: int) -> bytes:
    return number.to_bytes(8, "little")


def _thread(work: Callable[..., None], name: str, *args: Any) -> threading.Thread:
    thread = threading.Thread(target=work, name=name, args=args, daemon=True)
    thread.start()
    return thread


def _tune(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_S, 0))
    # A machine that vanished is noticed after half a minute.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 4)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _shut(connection: socket.socket) -> None:
    """End it, so that whoever waits in it wakes up."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def _read(connection: socket.socket, size: int) -> bytes:
    return bytes(_read_into(connection, memoryview(bytearray(size))))


def _read_frame(connection: socket.socket) -> memoryview:
    size = int.from_bytes(_read(connection, 8), "little")
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


def _send_frame(connection: socket.socket, buffers: Iterable[Any]) -> int:
    parts = [memoryview(buffer).cast("B") for buffer in buffers if len(buffer)]
    size = sum(len(part) for part in parts)
    parts.insert(0, memoryview(_u64(size)))
    while parts:
        sent = connection.sendmsg(parts[:512])
        while parts and sent >= len(parts[0]):
            sent -= len(parts.pop(0))
        if sent:
            parts[0] = parts[0][sent:]
    return size
