"""What the daemon reports is delivered in the thread of the view, and a silent daemon is noticed."""

import shutil
import tempfile
import threading
from pathlib import Path

import pytest
from scripted_daemon import RUN_ID, TOKEN, ScriptedDaemon, ScriptedService

from mosaic.cli.inbox import Inbox
from mosaic.cli.live_runs import SILENCE_S, LiveRuns
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
    return LiveRuns(inbox=None, clock=Clock())


@pytest.fixture
def daemon():
    folder = Path(tempfile.mkdtemp(prefix="mosaic-"))
    daemon = ScriptedDaemon(folder / "daemon.sock", ScriptedService(state=pb.READY)).start()
    yield daemon
    daemon.close()
    shutil.rmtree(folder)


@pytest.fixture
def inbox(daemon):
    with TrainerClient.at(Endpoint(daemon.target, TOKEN)) as client, Inbox(client) as inbox:
        yield inbox


def test_a_complete_answer_replaces_and_a_partial_one_adds(runs, make_run):
    a, b, c = (make_run(run_id=name) for name in "ABC")

    runs.receive(RunList((a,), 1, is_whole=False))
    known_by_a_part = runs.is_known
    runs.receive(RunList((a, b), 2))
    runs.receive(RunList((c,), 2, deleted=("A",), is_whole=False))
    added = set(runs.by_id)
    runs.changes()
    runs.receive(RunList((b,), 1))

    assert not known_by_a_part
    assert added == {"B", "C"}
    assert set(runs.by_id) == {"B"}
    assert runs.changes() == {"B", "C"}


def test_a_daemon_that_stops_or_hangs_is_noticed(runs):
    runs.receive(RunList((), 0))
    fine = runs.silent_s
    runs._clock.now += SILENCE_S + 1
    hangs = runs.silent_s
    runs.receive(RunList((), 0, is_whole=False))
    answers = runs.silent_s
    runs.receive(RunList((), 0, is_whole=False, problem="No daemon answers."))
    runs._clock.now += 2
    runs.receive(RunList((), 0, is_whole=False, problem="No daemon answers."))

    assert (fine, hangs, answers) == (0.0, SILENCE_S + 1, 0.0)
    assert (runs.silent_s, runs.problem) == (2.0, "No daemon answers.")


def test_items_are_delivered_in_the_thread_that_asks_for_them(inbox):
    threads = []
    inbox.subscribe(
        lambda inner: inner.watch_runs(interval_ms=50), lambda _: threads.append(threading.current_thread())
    )

    assert inbox.wait(30)
    assert threads == []
    inbox.deliver()
    assert set(threads) == {threading.current_thread()}


def test_nothing_is_delivered_after_a_subscription_is_cancelled(inbox):
    received = []
    cancel = inbox.subscribe(lambda inner: inner.watch_runs(interval_ms=50), received.append)
    assert inbox.wait(30)

    cancel()
    inbox.deliver()

    assert received == []


def test_a_restart_is_reported_and_the_run_is_there_again(daemon, inbox):
    runs = LiveRuns(inbox, [RUN_ID]).follow()
    until(inbox, lambda: runs.is_known)

    daemon.stop()
    until(inbox, lambda: runs.problem)
    daemon.service.state = pb.EXECUTING
    daemon.start()
    until(inbox, lambda: not runs.problem)

    assert str(runs.by_id[RUN_ID].state) == "EXECUTING"


def test_an_error_is_kept(inbox):
    runs = LiveRuns(inbox)
    inbox.subscribe(lambda inner: failing(), runs.receive)

    until(inbox, lambda: runs.error)

    assert isinstance(runs.error, UnknownRun)


async def failing():
    raise UnknownRun("01ZZZ")
    yield


def until(inbox, done):
    for _ in range(300):
        inbox.wait(0.1)
        inbox.deliver()
        if done():
            return
    raise AssertionError("timeout")
