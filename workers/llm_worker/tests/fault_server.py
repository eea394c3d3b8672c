"""A server that fails on request: real sockets, standard library. Each request takes the next of its `faults`."""

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "faulty-1"
GOOD = {"action": "left"}


def completion(content: str | None, **message: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": f"{MODEL}-served",
        "system_fingerprint": "fp_1",
        "choices": [
            {
                "index": 0,
                "finish_reason": message.pop("finish_reason", "stop"),
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": 40},
        },
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "FaultServer"

    def do_GET(self) -> None:
        if self.server.models_status != 200:
            self.send(self.server.models_status, self.server.models_body)
        elif self.path.endswith("/models"):
            self.send(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        else:
            self.send(404, {"error": {"message": "not here"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({"body": body, "headers": dict(self.headers)})
        fault = self.server.faults.popleft() if self.server.faults else self.server.always
        fault(self)

    def send(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


Fault = Callable[[Handler], None]


class FaultServer(ThreadingHTTPServer):
    """`faults`: what the next requests get; `always`: what all others get."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults: deque[Fault] = deque()
        self.always: Fault = answer(json.dumps(GOOD))
        self.requests: list[dict[str, Any]] = []
        self.models_status = 200
        self.models_body: Any = {}
        self.released = threading.Event()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def close(self) -> None:
        self.released.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: Any) -> None:
        """A client that hangs up in the middle is what some tests are about."""


def answer(content: str | None, **message: Any) -> Fault:
    return lambda handler: handler.send(200, completion(content, **message))


def status(number: int, message: str = "", headers: dict[str, str] | None = None, **error: Any) -> Fault:
    return lambda handler: handler.send(number, {"error": {"message": message, **error}}, headers)


def document(value: Any) -> Fault:
    return lambda handler: handler.send(200, value)


def hang(handler: Handler) -> None:
    """No byte of an answer until the test ends."""
    handler.server.released.wait()
    handler.close_connection = True


def drip(handler: Handler) -> None:
    """A byte now and then, for ever: no single read times out."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
    while not handler.server.released.wait(0.02):
        handler.wfile.write(b" ")


def drip_header(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not handler.server.released.wait(0.02):
        handler.wfile.write(b"a")


def reset(handler: Handler) -> None:
    """The connection is reset, not closed."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def cut(handler: Handler) -> None:
    """Half of an answer."""
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"choices": [')
    handler.close_connection = True


def huge(handler: Handler) -> None:
    """An answer without end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    while not handler.server.released.is_set():
        handler.wfile.write(chunk)
