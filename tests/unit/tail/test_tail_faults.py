"""Exactly once and in order, whatever fails: the server, its replies, its disk, or the tailer."""

import os
import random
import threading
import time

import grpc
import pytest
from tail_store import Bench, step_line, wait_until

from mosaic.model.daemon_address import encode
from mosaic.model.durable import write_json
from mosaic.wire import mosaic_pb2 as pb

COUNT = 3000


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    bench.close()


class Worker(threading.Thread):
    """Prints COUNT steps with text between them, split at random places, as a pipe may split them."""

    def __init__(self, bench, seed):
        super().__init__()
        self._out = bench.stdout
        self._random = random.Random(seed)
        self.text = b"".join(b"text %d\n" % index for index in range(0, COUNT, 7))

    def run(self):
        data = b"".join(step_line(i) + (b"text %d\n" % i if i % 7 == 0 else b"") for i in range(COUNT))
        while data:
            cut = self._random.randint(1, 2000)
            self._out.write(data[:cut])
            data = data[cut:]
            time.sleep(0.003)  # so that the faults happen between the lines


def assert_everything_once(bench, worker):
    assert bench.store.steps() == list(range(COUNT))
    assert bench.store.text() == worker.text
    assert bench.store.rejects == []
    assert bench.store.gaps == []


@pytest.mark.parametrize("seed", [1, 2])
def test_server_restarts_lose_and_duplicate_nothing(bench, seed):
    chance = random.Random(seed)
    worker = Worker(bench, seed)
    bench.start_server()
    tailer = bench.start_tailer()
    # On a busy machine the run could be over before the tailer starts.
    wait_until(lambda: bench.store.registrations, "the tailer")
    worker.start()
    wait_until(bench.store.steps, "the first events")

    while worker.is_alive():
        seen = len(bench.store.events)
        bench.stop_server()
        worker.join(chance.random() * 0.2)
        bench.start_server()
        wait_until(
            lambda seen=seen: len(bench.store.events) > seen or not worker.is_alive(), "an event after a restart"
        )
    bench.finish(tailer)

    assert len(bench.store.registrations) > 1
    assert_everything_once(bench, worker)


@pytest.mark.parametrize("seed", [3, 4])
def test_a_tailer_killed_at_any_point_is_followed_by_one_that_continues_there(bench, seed):
    chance = random.Random(seed)
    worker = Worker(bench, seed)
    bench.start_server()
    tailer = bench.start_tailer()
    # On a busy machine the run could be over before the tailer starts.
    wait_until(lambda: bench.store.registrations, "the tailer")
    worker.start()

    while worker.is_alive():
        seen = len(bench.store.events) + chance.randint(1, 500)
        wait_until(lambda seen=seen: len(bench.store.events) >= seen or not worker.is_alive(), "some events")
        tailer.kill()
        tailer = bench.start_tailer()
    bench.finish(tailer)

    assert len(bench.store.registrations) > 1
    assert_everything_once(bench, worker)


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ("after", grpc.StatusCode.UNAVAILABLE),  # stored, but the reply got lost
        ("after", grpc.StatusCode.DEADLINE_EXCEEDED),
        ("before", grpc.StatusCode.UNAVAILABLE),
        ("before", grpc.StatusCode.FAILED_PRECONDITION),
        ("before", grpc.StatusCode.UNAUTHENTICATED),
    ],
)
def test_a_failed_reply_loses_and_duplicates_nothing(bench, when, code):
    chance = random.Random(5)
    bench.store.fault = lambda request, now: code if now == when and chance.random() < 0.3 else None
    worker = Worker(bench, 5)
    bench.start_server()
    tailer = bench.start_tailer()
    wait_until(lambda: bench.store.registrations, "the tailer")

    worker.run()
    bench.store.fault = lambda request, now: None
    bench.finish(tailer)

    assert len(bench.store.registrations) > 1
    assert_everything_once(bench, worker)


@pytest.mark.parametrize("requests", [1, 3])
def test_a_daemon_that_keeps_ending_the_stream_receives_everything_once(bench, requests):
    # 1: a daemon that answers one request per call, as older ones do.
    bench.store.requests_per_stream = requests
    worker = Worker(bench, 9)
    bench.start_server()
    tailer = bench.start_tailer()
    wait_until(lambda: bench.store.registrations, "the tailer")

    worker.run()
    bench.finish(tailer)

    assert bench.store.streams >= len(bench.store.requests) / requests
    assert_everything_once(bench, worker)


@pytest.mark.parametrize("code", [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INTERNAL])
def test_the_tailer_waits_while_the_disk_is_full(bench, code):
    refusals = []

    def full(request, when):
        if when == "before" and len(refusals) < 2:
            refusals.append((request.start, request.end))
            return code
        return None

    bench.store.fault = full
    worker = Worker(bench, 6)
    bench.start_server()
    tailer = bench.start_tailer()
    wait_until(lambda: bench.store.registrations, "the tailer")

    worker.run()
    bench.finish(tailer)

    assert refusals[0] == refusals[1]
    assert len(bench.store.registrations) == 1
    assert_everything_once(bench, worker)


def test_a_reply_lost_while_the_disk_was_full_is_noticed(bench):
    answers = []

    def lose_one(request, when):
        answers.append(when)
        return grpc.StatusCode.INTERNAL if answers.count("after") == 1 and when == "after" else None

    bench.store.fault = lose_one
    worker = Worker(bench, 7)
    bench.start_server()
    tailer = bench.start_tailer()
    wait_until(lambda: bench.store.registrations, "the tailer")

    worker.run()
    bench.finish(tailer)

    assert_everything_once(bench, worker)


def test_a_slow_server_does_not_delay_the_worker(bench):
    gate = threading.Event()
    bench.store.fault = lambda request, when: (gate.wait(60) and None) if when == "before" else None
    worker = Worker(bench, 8)
    bench.start_server()
    tailer = bench.start_tailer()
    wait_until(lambda: bench.store.registrations, "the tailer")

    worker.run()
    assert bench.store.steps() == []
    gate.set()
    bench.finish(tailer)

    assert_everything_once(bench, worker)


def test_a_line_the_daemon_cannot_accept_becomes_a_reject_and_its_neighbours_stay(bench):
    def reject(request, when):
        bad = when == "before" and any(event.step.step_index == 40 for event in request.events)
        return grpc.StatusCode.INVALID_ARGUMENT if bad else None

    bench.store.fault = reject
    bench.stdout.write(b"".join(step_line(index) for index in range(100)))
    bench.start_server()

    bench.finish(bench.start_tailer())

    assert bench.store.steps() == [index for index in range(100) if index != 40]
    assert [reject.head for reject in bench.store.rejects] == [step_line(40)]
    assert "refused" in bench.store.rejects[0].reason
    assert bench.store.next_offset[pb.STDOUT] == sum(len(step_line(index)) for index in range(100))


def test_a_daemon_at_a_new_address_is_found(bench):
    bench.start_server()
    tailer = bench.start_tailer()
    bench.stdout.write(step_line(0))
    wait_until(bench.store.steps, "the first event")
    bench.stop_server()

    bench.socket = f"unix:{bench.root.path}/elsewhere.sock"
    bench.start_server()
    write_json(bench.root.address, encode(bench.root, ["127.0.0.1:1", bench.socket], ""))
    bench.stdout.write(step_line(1))
    bench.finish(tailer)

    assert bench.store.steps() == [0, 1]


@pytest.fixture
def imitation(tmp_path, monkeypatch):
    """A `mosaic.daemon.server` that only records how it was started."""
    note = tmp_path / "started.txt"
    package = tmp_path / "imitation"
    package.mkdir()
    (package / "sitecustomize.py").write_text(
        "import sys, os\n"
        "if 'mosaic.daemon.server' in sys.orig_argv:\n"
        f"    open({str(note)!r}, 'a').write(' '.join(sys.orig_argv[1:]) + f' sid={{os.getsid(0) == os.getpid()}}'"
        " + f' run={os.environ.get(\"MOSAIC_RUN_ID\")}' + chr(10))\n"
        "    os._exit(0)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(package), prepend=os.pathsep)
    monkeypatch.setenv("MOSAIC_RUN_ID", "of a run")
    return note


def test_a_tailer_without_a_daemon_starts_one(bench, imitation):
    bench.start_tailer("--patience-s", "0.3")

    wait_until(lambda: imitation.exists() and imitation.read_text().endswith("\n"), "a daemon")

    expected = f"-m mosaic.daemon.server --root {bench.root.path} --from-settings sid=True run=None"
    assert imitation.read_text().splitlines()[0] == expected


def test_a_daemon_that_was_stopped_on_purpose_stays_stopped(bench, imitation):
    write_json(bench.root.settings, {"version": 1, "stopped_on_purpose": True})
    tailer = bench.start_tailer("--patience-s", "0.1")
    bench.stdout.write(step_line(0))

    threading.Event().wait(2)  # many times its timeout
    assert not imitation.exists()
    assert tailer.poll() is None

    bench.start_server()
    bench.finish(tailer)
    assert bench.store.steps() == [0]
