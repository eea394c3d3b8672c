"""What the daemon says reaches a view in the view's own thread, and silence is not taken for peace."""

import shutil
import tempfile
import threading
from pathlib import Path

import pytest
from scripted_daemon import RUN_ID, TOKEN, ScriptedDaemon, ScriptedService

from mosaic.cli.feed import SILENCE_S, Feed, Runs
from mosaic.client import TrainerClient
from mosaic.client.endpoint import Endpoint
from mosaic.client.run import RunList
from mosaic.model.errors import UnknownRun
from mosaic.wire import mosaic_pb2 as pb


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def runs():
    return Runs(feed=None, clock=Clock())


@pytest.fixture
def daemon():
    folder = Path(tempfile.mkdtemp(prefix="mosaic-"))
    daemon = ScriptedDaemon(folder / "daemon.sock", ScriptedService(state=pb.READY)).start()
    yield daemon
    daemon.close()
    shutil.rmtree(folder)


@pytest.fixture
def feed(daemon):
    with TrainerClient.at(Endpoint(daemon.target, TOKEN)) as client, Feed(client) as feed:
        yield feed


def test_a_whole_answer_replaces_and_a_part_is_added(runs, make_run):
    a, b, c = (make_run(run_id=name) for name in "ABC")

    runs.hear(RunList((a,), 1, is_whole=False))
    known_by_a_part = runs.is_known
    runs.hear(RunList((a, b), 2))
    runs.hear(RunList((c,), 2, deleted=("A",), is_whole=False))
    added = set(runs.by_id)
    runs.changes()
    runs.hear(RunList((b,), 1))

    assert not known_by_a_part
    assert added == {"B", "C"}
    assert set(runs.by_id) == {"B"}
    assert runs.changes() == {"B", "C"}


def test_a_daemon_that_stops_or_hangs_is_noticed(runs):
    runs.hear(RunList((), 0))
    fine = runs.silent_s
    runs._clock.now += SILENCE_S + 1
    hangs = runs.silent_s
    runs.hear(RunList((), 0, is_whole=False))
    answers = runs.silent_s
    runs.hear(RunList((), 0, is_whole=False, trouble="No daemon answers."))
    runs._clock.now += 2
    runs.hear(RunList((), 0, is_whole=False, trouble="No daemon answers."))

    assert (fine, hangs, answers) == (0.0, SILENCE_S + 1, 0.0)
    assert (runs.silent_s, runs.trouble) == (2.0, "No daemon answers.")


def test_what_arrives_is_heard_by_whoever_takes_it(feed):
    threads = []
    feed.listen(lambda inner: inner.watch_runs(interval_ms=50), lambda _: threads.append(threading.current_thread()))

    assert feed.wait(30)
    assert threads == []
    feed.take()
    assert set(threads) == {threading.current_thread()}


def test_nothing_is_heard_after_the_end_of_listening(feed):
    heard = []
    end = feed.listen(lambda inner: inner.watch_runs(interval_ms=50), heard.append)
    assert feed.wait(30)

    end()
    feed.take()

    assert heard == []


def test_a_restart_is_said_and_the_run_is_there_again(daemon, feed):
    runs = Runs(feed, [RUN_ID]).follow()
    until(feed, lambda: runs.is_known)

    daemon.stop()
    until(feed, lambda: runs.trouble)
    daemon.service.state = pb.EXECUTING
    daemon.start()
    until(feed, lambda: not runs.trouble)

    assert str(runs.by_id[RUN_ID].state) == "EXECUTING"


def test_an_error_is_kept(feed):
    runs = Runs(feed)
    feed.listen(lambda inner: failing(), runs.hear)

    until(feed, lambda: runs.error)

    assert isinstance(runs.error, UnknownRun)


async def failing():
    raise UnknownRun("01ZZZ")
    yield


def until(feed, done):
    for _ in range(300):
        feed.wait(0.1)
        feed.take()
        if done():
            return
    raise AssertionError("waited in vain")
