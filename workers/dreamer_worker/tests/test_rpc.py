"""Calls between processes: order, limits, reconnection, unauthenticated clients."""

import contextlib
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc

import numpy as np
import portal
import pytest
from dreamer_worker.rpc import Client, Disconnected, Garbage, RpcError, Server, framing, free_address, greeting_of


@pytest.fixture
def server(secret):
    server = Server("127.0.0.1:0", secret)
    server.bind("echo", lambda value: value, threads=0)
    yield server
    server.close()


@pytest.fixture
def client_of(secret):
    clients = []

    def make(address, **options):
        clients.append(Client(address, options.pop("secret", secret), **options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def test_trees_of_arrays_survive_a_round_trip(server, client_of):
    sent = {
        "image": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
        "half": np.ones((2, 0), np.float16),
        "text": "",
        "no": None,
    }

    got = client_of(server.start().address).ask("echo", sent)

    assert got["text"] == ""
    assert got["no"] is None
    assert got["image"].dtype == np.uint8
    assert (got["image"] == sent["image"]).all()
    assert got["half"].shape == (2, 0)
    got["image"][0] = 1  # what was received may be written to


def test_an_array_that_is_not_contiguous_is_sent_too(server, client_of):
    sent = np.arange(12).reshape(3, 4).T

    assert (client_of(server.start().address).ask("echo", sent) == sent).all()


def test_a_failing_method_reports_to_its_caller_and_the_server_continues(server, client_of):
    server.bind("fail", lambda: 1 / 0)
    client = client_of(server.start().address)

    with pytest.raises(RpcError, match="division by zero"):
        client.ask("fail")
    with pytest.raises(RpcError, match="Unknown method nonsense"):
        client.ask("nonsense")
    assert client.ask("echo", 3) == 3


def test_a_method_that_waits_does_not_block_others(server, client_of):
    gate = threading.Event()
    server.bind("wait", lambda: gate.wait(60))
    client = client_of(server.start().address)

    waiting = client.call("wait")

    assert client.ask("echo", 1, timeout_s=30) == 1
    assert not waiting.done()
    gate.set()
    assert waiting.result(30)


def test_requests_to_one_method_are_handled_in_their_order(server, client_of):
    seen = []
    server.bind("note", seen.append)
    client = client_of(server.start().address, max_inflight=4)

    futures = [client.call("note", number) for number in range(100)]
    for future in futures:
        future.result(30)

    assert [int(number) for number in seen] == list(range(100))


def test_no_more_calls_are_in_flight_than_allowed(server, client_of):
    gate = threading.Event()
    server.bind("wait", lambda: gate.wait(60))
    client = client_of(server.start().address, max_inflight=2)
    asked = []

    def ask_thrice():
        for _ in range(3):
            asked.append(client.call("wait"))

    thread = threading.Thread(target=ask_thrice, daemon=True)
    thread.start()
    thread.join(0.2)

    assert len(asked) == 2
    gate.set()
    thread.join(30)
    assert len(asked) == 3


def test_an_answer_may_be_given_later_by_another_thread(server, client_of):
    replies = []
    server.bind_deferred("later", lambda reply, value: replies.append((reply, value)))
    client = client_of(server.start().address)

    futures = [client.call("later", number) for number in range(3)]
    client.ask("echo", 0)  # behind them on the same connection: they are all taken now
    for reply, value in reversed(replies):
        reply(value * 10)

    assert [int(future.result(30)) for future in futures] == [0, 10, 20]


def test_a_disconnect_is_reported_once(server, client_of):
    left = threading.Event()
    peers = []
    server.on_leave = lambda peer: (peers.append(peer), left.set())
    server.bind_deferred("who", lambda reply: reply(reply.peer))
    client = client_of(server.start().address)
    number = int(client.ask("who"))

    client.close()

    assert left.wait(30)
    assert peers == [number]


def test_without_the_secret_nothing_is_answered(server, client_of):
    client = client_of(server.start().address, secret="a-secret-for-tesst", resend=False)
    client.wait_connected(30)

    with pytest.raises(Disconnected):
        client.ask("echo", 1, timeout_s=30)


@pytest.mark.parametrize(
    "packet",
    [b"", b"\xff" * 8, b"\x00" * 8, (20).to_bytes(8, "little") + b"\x01" * 20, b"GET / HTTP/1.0\r\n\r\n" * 3],
    ids=["closed at once", "huge length", "empty message", "no payload", "http"],
)
@pytest.mark.parametrize("greets", [True, False])
def test_garbage_ends_only_its_own_connection(server, client_of, secret, packet, greets):
    client = client_of(server.start().address)
    client.ask("echo", 1, timeout_s=30)
    host, port = server.address.split(":")

    with socket.create_connection((host, int(port))) as idler:
        idler.sendall((greeting_of(secret).encode() if greets else b"") + packet)
        idler.settimeout(30)
        with contextlib.suppress(OSError):  # the server may be faster and cut us off
            idler.shutdown(socket.SHUT_WR)
            while idler.recv(4096):
                pass

    assert client.ask("echo", 2, timeout_s=30) == 2


def test_a_message_that_is_too_large_ends_the_connection(server, secret):
    host, port = server.start().address.split(":")

    with socket.create_connection((host, int(port)), timeout=30) as peer:
        peer.sendall(greeting_of(secret).encode() + (1 << 31).to_bytes(8, "little"))

        assert peer.recv(1) == b""


def test_a_message_that_is_too_large_is_not_sent(server, client_of, monkeypatch):
    server.bind("much", lambda: np.zeros(5000, np.uint8))
    client = client_of(server.start().address)
    monkeypatch.setattr(framing, "MAX_MESSAGE_BYTES", 5000)

    with pytest.raises(ValueError, match=r"a message of 50\d\d bytes exceeds the limit of 5000"):
        client.call("echo", np.zeros(5000, np.uint8))
    with pytest.raises(RpcError, match="exceeds the limit of 5000"):
        client.ask("much", timeout_s=30)
    assert client.ask("echo", 1, timeout_s=30) == 1


def test_a_server_listens_on_loopback_by_default(secret):
    server = Server("0", secret)

    assert server.address.startswith("127.0.0.1:")
    server.close()


SERVER = textwrap.dedent("""
    import sys, threading
    from dreamer_worker.rpc import Server
    server = Server(sys.argv[1], "a-secret-for-tests")
    server.bind("who", lambda number: [sys.argv[2], number])
    server.bind("hang", lambda number: threading.Event().wait() if sys.argv[2] == "first" else number)
    server.start()
    print("up", flush=True)
    threading.Event().wait()
""")


@pytest.fixture
def process_at():
    running = []

    def start(address, name):
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, address, name],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": folder},
        )
        running.append(process)
        assert process.stdout.readline() == b"up\n"
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()


def test_unanswered_calls_are_sent_again_to_a_server_that_was_killed(client_of, process_at):
    address = free_address()
    first = process_at(address, "first")
    client = client_of(address)
    assert client.ask("who", 0)[0] == "first"

    hanging = [client.call("hang", number) for number in range(3)]
    first.kill()
    first.wait()
    process_at(address, "second")

    assert [int(future.result(60)) for future in hanging] == [0, 1, 2]
    assert client.ask("who", 1)[0] == "second"


def test_without_resending_a_lost_call_raises_and_the_client_reconnects(client_of, process_at):
    address = free_address()
    first = process_at(address, "first")
    client = client_of(address, resend=False)
    assert client.wait_connected(60)

    hanging = client.call("hang", 1)
    first.kill()
    first.wait()
    with pytest.raises(Disconnected):
        hanging.result(60)
    process_at(address, "second")

    assert client.wait_connected(60)
    assert client.ask("who", 1)[0] == "second"


def test_a_plain_portal_client_is_answered(server, secret):
    # Portal refuses to be used by threads it does not know, so its client is used here in the main one.
    client = portal.Client(server.start().address, handshake=greeting_of(secret), logging=False)
    try:
        assert client.echo({"x": np.arange(3)}).result(timeout=30)["x"].tolist() == [0, 1, 2]
    finally:
        client.close(timeout=5)


def test_our_client_calls_a_plain_portal_server(client_of, secret):
    address = free_address()
    server = portal.Server(address, handshake=greeting_of(secret), host="127.0.0.1", logging=False)
    server.bind("double", lambda value: value * 2)
    server.start(block=False)
    try:
        assert client_of(address).ask("double", 21, timeout_s=30) == 42
    finally:
        server.close(timeout=5)


def test_closing_while_an_answer_comes_gives_the_caller_one_answer(server, client_of, monkeypatch):
    client = client_of(server.start().address)
    errors = []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    unpack = framing.packlib.unpack

    def close_meanwhile(data):
        value = unpack(data)
        if not isinstance(value, list):  # the answer; requests are lists
            client.close()
        return value

    monkeypatch.setattr(framing.packlib, "unpack", close_meanwhile)
    future = client.call("echo", 7)

    assert isinstance(future.exception(30), Disconnected)
    client._thread.join(30)
    assert errors == []


def test_no_cpu_is_used_while_there_are_no_calls(server, client_of):
    gate = threading.Event()
    server.bind("wait", lambda: gate.wait(60))
    client = client_of(server.start().address)
    waiting = client.call("wait")
    client.ask("echo", 1)

    before = time.process_time()
    waiting_s = 1.0
    gate.wait(waiting_s)  # never set: the process sleeps
    used = time.process_time() - before

    assert used < 0.05 * waiting_s  # Portal uses about 0.16 for a server alone
    gate.set()
    waiting.result(30)


def test_a_server_waits_for_its_address_until_the_previous_one_releases_it(secret):
    before = Server("0", secret)
    threading.Timer(0.3, before.close).start()

    after = Server(before.address, secret, patience_s=60)

    assert after.address == before.address
    after.close()


def test_an_address_that_is_taken_is_an_error(secret):
    before = Server("0", secret)

    with pytest.raises(OSError, match="in use"):
        Server(before.address, secret)
    before.close()


def test_a_closed_server_finishes_earlier_requests(server, client_of):
    done, gate = [], threading.Event()
    server.bind("work", lambda number: done.append((gate.wait(30), number)))
    client = client_of(server.start().address)
    for number in range(3):
        client.call("work", number)
    client.ask("echo", 1)  # all three have arrived by now

    server.close()
    gate.set()
    server.finish(30)

    assert [number for _, number in done] == [0, 1, 2]


def test_a_client_that_sends_its_greeting_too_slowly_is_disconnected(server, secret, monkeypatch):
    monkeypatch.setattr("dreamer_worker.rpc.server.HANDSHAKE_S", 0.5)
    host, port = server.start().address.split(":")
    clock = threading.Event()

    with socket.create_connection((host, int(port)), timeout=30) as idler, contextlib.suppress(OSError):
        for byte in greeting_of(secret).encode():
            idler.sendall(bytes([byte]))  # one byte at a time, each within the timeout
            clock.wait(0.05)

    assert server.stats()["connections"] == 0


def test_idle_unauthenticated_connections_are_limited(server, client_of, monkeypatch):
    monkeypatch.setattr("dreamer_worker.rpc.server.HANDSHAKE_S", 1000)
    monkeypatch.setattr("dreamer_worker.rpc.server.MOST_PENDING", 5)
    host, port = server.start().address.split(":")

    with contextlib.ExitStack() as stack:
        idlers = [stack.enter_context(socket.create_connection((host, int(port)), timeout=30)) for _ in range(8)]

        assert [idler.recv(1) for idler in idlers[:3]] == [b"", b"", b""]  # the oldest ones were closed
        assert client_of(server.address).ask("echo", 1, timeout_s=30) == 1  # and so was the fourth
        assert idlers[3].recv(1) == b""
        idlers[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            idlers[-1].recv(1)


def test_a_payload_that_claims_to_have_many_parts_takes_no_memory():
    tracemalloc.start()
    try:
        with pytest.raises(Garbage):
            framing.unpack(memoryview((1 << 28).to_bytes(8, "little") + bytes(64)))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_request_that_a_closing_server_could_not_serve_goes_to_the_next(server, client_of):
    asked, again = [], threading.Event()

    def close():
        asked.append(1)
        if len(asked) > 1:
            again.set()
        raise Disconnected("what it works with is closed")

    server.bind("work", close)
    client = client_of(server.start().address)

    future = client.call("work")
    assert again.wait(30)
    server.close()
    after = Server(server.address, "a-secret-for-tests", patience_s=60)
    after.bind("work", lambda: "done")
    after.start()

    assert future.result(60) == "done"
    after.close()


def test_a_client_without_an_answer_warns_once(client_of, caplog, monkeypatch):
    monkeypatch.setattr("dreamer_worker.rpc.client.BACKOFF_S", (0.001,))
    tries, many = [], threading.Event()
    connect = socket.create_connection

    def count(*args, **options):
        tries.append(args)
        if len(tries) > 100:
            many.set()
        return connect(*args, **options)

    monkeypatch.setattr(socket, "create_connection", count)

    client_of(free_address())

    assert many.wait(60)
    assert [record.message.startswith("No answer from 127.0.0.1:") for record in caplog.records] == [True]
