import json
import os
import threading
import time

import pytest
from mosaic_sdk.emit import Emitter
from mosaic_sdk.heartbeat import Heartbeat


class Listener:
    """Reads the heartbeats from a pipe."""

    def __init__(self):
        read, self.fd = os.pipe()
        self.emitter = Emitter(self.fd, run_id="r1")
        self._pipe = os.fdopen(read, "rb")

    def next(self):
        return self.payload()["progress"]

    def payload(self):
        line = json.loads(self._pipe.readline())
        assert line["event"] == "heartbeat"
        return line["payload"]

    def wait_for(self, progress):
        deadline = time.monotonic() + 20
        while self.next() != progress:
            assert time.monotonic() < deadline

    def rest(self):
        os.close(self.fd)
        return self._pipe.read()


@pytest.fixture
def listener():
    return Listener()


def test_heartbeats_carry_the_total_if_it_is_known(listener):
    with Heartbeat(3600, progress=lambda: 3, emitter=listener.emitter, total=10):
        pass

    assert b'"progress":3,"total":10' in listener.rest()


def test_a_total_that_is_known_later_is_reported_later(listener):
    totals = iter([0, 10])
    with Heartbeat(0.001, progress=lambda: 3, emitter=listener.emitter, total=lambda: next(totals, 10)):
        first, second = listener.payload(), listener.payload()

    assert (first, second) == ({"progress": 3}, {"progress": 3, "total": 10})


def test_the_first_heartbeat_is_immediate(listener):
    with Heartbeat(3600, emitter=listener.emitter):
        assert listener.next() == 0


def test_heartbeats_carry_what_advance_counted(listener):
    with Heartbeat(0.001, emitter=listener.emitter) as heart:
        heart.advance()
        heart.advance(4)

        listener.wait_for(5)


def test_heartbeats_carry_what_the_callable_returns(listener):
    with Heartbeat(3600, progress=lambda: 17, emitter=listener.emitter):
        assert listener.next() == 17


def test_no_heartbeat_follows_the_block(listener):
    with Heartbeat(0.001, emitter=listener.emitter) as heart:
        listener.next()
        heart.advance(9)
        listener.wait_for(9)

    assert "mosaic-heartbeat" not in [thread.name for thread in threading.enumerate()]
    last = listener.rest()
    assert last == b"" or last.endswith(b"}\n")


def test_a_stopped_heartbeat_can_start_again(listener):
    heart = Heartbeat(3600, emitter=listener.emitter)
    heart.start()
    listener.next()
    heart.stop()
    heart.advance(2)

    heart.start()

    assert listener.next() == 2
    heart.stop()


CHILD = """
import os, threading
from mosaic_sdk.heartbeat import Heartbeat

def hold_lock():
    with heart._stop._cond:  # as the heart's own thread does for a moment at every beat
        held.set()
        forked.wait()

held, forked = threading.Event(), threading.Event()
with Heartbeat(0.001) as heart:
    threading.Thread(target=hold_lock).start()
    held.wait()
    pid = os.fork()
    if pid == 0:
        heart.advance(1000)  # would be seen in the lines if the child beat
    else:
        assert os.waitpid(pid, 0)[1] == 0
        forked.set()
if pid == 0:
    os._exit(threading.active_count() - 1)
"""


def test_a_forked_child_sends_no_heartbeat_and_can_leave_the_block(bench):
    ended = bench.script(CHILD)

    assert ended.code == 0, ended.err
    assert {line["payload"]["progress"] for line in ended.objects} == {0}
