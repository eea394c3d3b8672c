"""Calls the server at an address."""

from __future__ import annotations

import itertools
import logging
import socket
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from dreamer_worker.rpc.address import split_address
from dreamer_worker.rpc.framing import (
    HANDSHAKE_S,
    Disconnected,
    Garbage,
    RpcError,
    greeting_of,
    pack,
    read_frame,
    send_frame,
    shut,
    tune,
    u64,
    unpack,
)
from dreamer_worker.rpc.traffic import Traffic

log = logging.getLogger(__name__)

BACKOFF_S = (0.05, 0.1, 0.2, 0.5)
MANY_FAILURES = 40  # in a row; about 20 s


@dataclass
class _Call:
    """A request that waits for its answer."""

    buffers: list[Any]
    future: Future[Any] = field(default_factory=Future)
    sent_on: int = 0  # the number of the connection that it was sent over


class Client:
    """Calls the server at an address. Its promises:

    1. At most `max_inflight` calls wait for an answer; the next one blocks its caller.
    2. It reconnects automatically, without a limit. With `resend`, unanswered calls are sent again in order, so a call
       may be executed twice; without it they raise Disconnected.
    3. It uses no CPU while there are no calls.
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
        self._thread = threading.Thread(target=self._run, name=f"rpc-client-{address}", daemon=True)
        self._thread.start()

    def call(self, method: str, *args: Any) -> Future[Any]:
        """Send a request; the future has the answer."""
        name = method.encode()
        buffers = [u64(len(name)), name, *pack(args)]
        started = time.perf_counter()
        call = self._register(buffers)
        self._traffic.waited(time.perf_counter() - started)
        with self._sending:
            self._send(call)
        return call.future

    def ask(self, method: str, *args: Any, timeout_s: float | None = None) -> Any:
        """Send a request and wait for the answer."""
        return self.call(method, *args).result(timeout_s)

    def wait_connected(self, timeout_s: float | None = None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._socket is not None or self._closed.is_set(), timeout_s)

    def drain(self, timeout_s: float | None = None) -> bool:
        """Wait until all requests so far are answered."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, timeout_s)

    def stats(self) -> dict[str, float]:
        return {**self._traffic.rates(), "inflight": len(self._waiting)}

    def close(self) -> None:
        with self._changed:
            self._closed.set()
            if self._socket:
                shut(self._socket)
        self._fail_waiting()

    def _register(self, buffers: list[Any]) -> _Call:
        number = u64(next(self._numbers))
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
        """Send over the present connection, once; without a connection the call waits for the next one."""
        connection = self._socket
        if connection is None or call.sent_on == self._connection:
            return
        call.sent_on = self._connection
        try:
            self._traffic.sent(send_frame(connection, call.buffers))
        except OSError:
            shut(connection)  # the reading thread notices and reconnects

    def _run(self) -> None:
        failures = 0
        while not self._closed.is_set():
            self._answered = False
            connection = self._connect()
            if connection:
                self._use(connection)
            failures = 0 if self._answered else failures + 1
            if failures == MANY_FAILURES:
                log.warning(
                    "No answer from %s. Check the address, and that both sides have the same secret.", self.address
                )
            if failures:
                self._closed.wait(BACKOFF_S[min(failures, len(BACKOFF_S)) - 1])

    def _connect(self) -> socket.socket | None:
        try:
            connection = socket.create_connection(split_address(self.address), timeout=HANDSHAKE_S)
            if connection.getsockname() == connection.getpeername():
                connection.close()  # no server listens, and the kernel has connected the socket to itself
                return None
            connection.sendall(self._greeting)
            connection.settimeout(None)
            tune(connection)
            return connection
        except OSError:
            return None

    def _use(self, connection: socket.socket) -> None:
        try:
            self._resume(connection)
            while True:
                self._settle(read_frame(connection))
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
        error = RpcError(bytes(frame[16:]).decode(errors="replace")) if status else None
        result = None if status else unpack(frame[16:])
        self._answered = True
        with self._changed:
            call = self._waiting.pop(number, None)
            self._changed.notify_all()
        if call is not None:  # else the client was closed meanwhile, and the call has failed
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


def _resolve(future: Future[Any], result: Any, error: Exception | None) -> None:
    if not future.set_running_or_notify_cancel():
        return
    if error:
        future.set_exception(error)
    else:
        future.set_result(result)
