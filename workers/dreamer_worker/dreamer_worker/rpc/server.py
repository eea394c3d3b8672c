"""Answers calls at an address."""

from __future__ import annotations

import errno
import hmac
import itertools
import logging
import queue
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from dreamer_worker.rpc.address import split_address
from dreamer_worker.rpc.framing import (
    FAILED,
    HANDSHAKE_S,
    OK,
    UNKNOWN,
    UNREADABLE,
    Disconnected,
    Garbage,
    greeting_of,
    pack,
    read_frame,
    read_within,
    send_frame,
    shut,
    tune,
    u64,
    unpack,
)
from dreamer_worker.rpc.traffic import Traffic

log = logging.getLogger(__name__)

REST_S = 0.5  # after a connection that could not be accepted
LEAVING_S = 20.0  # how long the previous owner of the address may take to release it
MOST_PENDING = 256  # connections that have not sent the secret yet


class Server:
    """Answers calls at one address. Its promises:

    1. Each method has threads of its own: a method that waits does not delay others, and requests to a method with one
       thread are handled in order.
    2. No input ends the server: without the secret nothing is parsed, and an invalid message ends its connection only.
       Idle unauthenticated connections time out and use at most a few hundred threads and files.
    3. It uses no CPU while there are no calls.
    """

    def __init__(self, address: str, secret: str, name: str = "server", patience_s: float = 0.0) -> None:
        self.name = name
        self.on_leave: Callable[[int], None] = lambda peer: None
        self._greeting = greeting_of(secret).encode()
        self._methods: dict[str, _Method] = {}
        self._peers: dict[int, _Peer] = {}
        self._pending: dict[int, _Peer] = {}  # oldest first
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._is_open = True
        self._traffic = Traffic()
        self._socket = _listen(address, patience_s)
        host, port = self._socket.getsockname()[:2]
        self.address = f"{host}:{port}"

    def bind(self, name: str, work: Callable[..., Any], threads: int = 1) -> None:
        """`work(*args)` returns the answer. `threads=0`: run in the connection's thread, for work that never waits."""
        self._methods[name] = _Method(name, lambda reply, *args: reply(work(*args)), threads)

    def bind_deferred(self, name: str, work: Callable[..., None]) -> None:
        """`work(reply, *args)` must not wait; it makes sure that `reply` is called later, by any thread."""
        self._methods[name] = _Method(name, work, 0)

    def start(self) -> Server:
        _thread(self._accept, f"{self.name}-accept")
        return self

    def close(self) -> None:
        self._is_open = False
        shut(self._socket)  # wakes the thread that waits in accept
        self._socket.close()
        with self._lock:
            peers = [*self._peers.values(), *self._pending.values()]
        for peer in peers:
            shut(peer.socket)
        for method in self._methods.values():
            method.close()

    def finish(self, limit_s: float) -> None:
        """After `close`: wait until earlier requests are done, although their answers are not sent."""
        until = time.monotonic() + limit_s
        for method in self._methods.values():
            method.join(until - time.monotonic())

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
                    time.sleep(REST_S)  # too many open files: wait until some are closed
                continue
            _thread(self._serve, f"{self.name}-peer", self._admit(connection))

    def _admit(self, connection: socket.socket) -> _Peer:
        """Accept a connection that has yet to send the secret. If there are too many, the oldest is closed."""
        peer = _Peer(next(self._numbers), connection, self._traffic)
        with self._lock:
            self._pending[peer.number] = peer
            if len(self._pending) > MOST_PENDING:
                shut(self._pending.pop(next(iter(self._pending))).socket)
        return peer

    def _serve(self, peer: _Peer) -> None:
        try:
            tune(peer.socket)
            self._check_greeting(peer)
            while self._is_open:
                self._take(peer, read_frame(peer.socket))
        except (OSError, Garbage, UnicodeDecodeError) as error:
            log.debug("%s: connection %d ended: %s", self.name, peer.number, error)
        finally:
            peer.socket.close()
            with self._lock:
                self._pending.pop(peer.number, None)
                known = self._peers.pop(peer.number, None)
            if known:
                self.on_leave(peer.number)

    def _check_greeting(self, peer: _Peer) -> None:
        received = read_within(peer.socket, len(self._greeting), HANDSHAKE_S)
        if not hmac.compare_digest(received, self._greeting):
            raise Garbage("wrong greeting")
        with self._lock:
            if self._pending.pop(peer.number, None) is None:
                raise Garbage("closed in favour of a newer connection")
            self._peers[peer.number] = peer

    def _take(self, peer: _Peer, frame: memoryview) -> None:
        self._traffic.received(len(frame))
        if len(frame) < 16:
            raise Garbage("shorter than any request")
        reply = Reply(peer, bytes(frame[:8]))
        size = int.from_bytes(frame[8:16], "little")
        try:
            name = bytes(frame[16 : 16 + size]).decode()
            args = unpack(frame[16 + size :])
        except (Garbage, UnicodeDecodeError):
            reply.fail("Could not decode message", UNREADABLE)
            raise
        method = self._methods.get(name)
        if method is None:
            reply.fail(f"Unknown method {name}", UNKNOWN)
        else:
            method.take(reply, args)


class Reply:
    """Answers one caller; does nothing if the caller is gone."""

    def __init__(self, peer: _Peer, number: bytes) -> None:
        self._peer = peer
        self._number = number

    @property
    def peer(self) -> int:
        return self._peer.number

    def __call__(self, result: Any = None) -> None:
        self._peer.send(self._number, u64(OK), *pack(result))

    def hang_up(self) -> None:
        """Close the connection without an answer: the caller may ask another server."""
        shut(self._peer.socket)

    def fail(self, text: str, status: int = FAILED) -> None:
        self._peer.send(self._number, u64(status), text.encode())


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

    def join(self, timeout_s: float) -> None:
        for thread in self._threads:
            thread.join(max(0.0, timeout_s))

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            self._answer(*job)

    def _answer(self, reply: Reply, args: Any) -> None:
        try:
            self._work(reply, *args)
        except Disconnected:  # it is closing: the caller asks its successor
            reply.hang_up()
        except Exception as error:  # the edge of a request: the caller gets the error, the server continues
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
                self._traffic.sent(send_frame(self.socket, buffers))
        except OSError as error:
            log.debug("connection %d accepted no answer: %s", self.number, error)
            shut(self.socket)


def _thread(work: Callable[..., None], name: str, *args: Any) -> threading.Thread:
    thread = threading.Thread(target=work, name=name, args=args, daemon=True)
    thread.start()
    return thread


def _listen(address: str, patience_s: float) -> socket.socket:
    """A socket at the address; a process of the previous launch may still be releasing it."""
    until = time.monotonic() + patience_s
    while True:
        try:
            return socket.create_server(split_address(address), backlog=512)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= until:
                raise
            time.sleep(REST_S)
