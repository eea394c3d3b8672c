"""Where a toy run takes up its helpers: a port that anybody may reach."""

import json
import socket

import pytest
from mosaic_sdk.names import WorkerEnv
from toy_worker import helpers


class Telemetry:
    def __init__(self):
        self.arrived = []

    def lifecycle(self, event, payload):
        if event == "helper_arrived":
            self.arrived.append(payload["index"])


@pytest.fixture
def run(monkeypatch):
    """Greet a run; the indexes that it has taken up when it has read all greetings."""
    monkeypatch.setenv(WorkerEnv.PARTS, json.dumps({"towards": "127.0.0.1", "parts": [{"name": "helper", "count": 9}]}))
    monkeypatch.setenv(WorkerEnv.PARTS_SECRET, "secret")
    telemetry = Telemetry()
    server = helpers.take_up_helpers(telemetry)

    def greet(*greetings):
        for greeting in greetings:
            with socket.create_connection(server.getsockname()[:2], 10) as connection:
                connection.sendall(greeting)
                connection.shutdown(socket.SHUT_WR)
        with socket.create_connection(server.getsockname()[:2], 10) as last:
            last.settimeout(10)
            last.sendall(b"wrong\n")
            assert last.recv(1) == b""  # it is the turn of this one, and it is refused
        return telemetry.arrived

    yield greet
    server.close()


@pytest.mark.parametrize("odd", [b"", b"\xff\xfe\n", b"secret x\n", b"secret\n", b"\xc3", b"wrong 3\n"])
def test_an_odd_greeting_does_not_keep_later_helpers_out(run, odd):
    assert run(odd, b"secret 4\n") == [4]


def test_no_more_than_a_greeting_is_read_before_the_secret(run, monkeypatch):
    monkeypatch.setattr(helpers, "LONGEST_GREETING", 7)

    assert run(b"secret 4\n") == []
