"""The hub and a daemon that dies, hangs, is not there, or is somebody else's."""

import asyncio
import os
import signal

import pytest

from mosaic.client import AsyncTrainerClient
from mosaic.gui.hub import link
from mosaic.gui.hub.hub import TelemetryAsyncHub
from mosaic.model.errors import NoDaemon, NotAllowed
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState

LONG = 60_000


@pytest.fixture
def make_hub(qapp):
    hubs = []

    def make(connect):
        hubs.append(TelemetryAsyncHub(connect))
        hubs[-1].start()
        return hubs[-1]

    yield make
    for hub in hubs:
        hub.stop()


def is_ok(hub):
    return hub.connection.state == "ok"


def test_everything_continues_after_the_daemon_was_killed(qtbot, hub, lab):
    run = lab.submit("survivor", steps=600, rate=150, text_every=5)
    seqs, log, states = [], [], []
    hub.connection_changed.connect(lambda connection: states.append(connection.state))
    feed = hub.follow(run.run_id, tail=100_000, logs=True)
    feed.received.connect(lambda batch: seqs.extend(event.seq for event in batch.events))
    feed.received.connect(lambda batch: log.extend(piece.text for piece in batch.log))
    qtbot.waitUntil(lambda: len(seqs) > 50, timeout=LONG)

    lab.kill_daemon()
    qtbot.waitUntil(lambda: hub.connection.state == "lost", timeout=LONG)
    problem = hub.connection.problem
    lab.restart_daemon()
    with qtbot.waitSignal(feed.ended, timeout=LONG):
        pass
    qtbot.waitUntil(lambda: hub.runs[run.run_id].state is RunState.TERMINATED, timeout=LONG)

    assert "No daemon answers" in problem
    assert seqs == list(range(1, lab.client.get_run(run.run_id).summary.events + 1))
    assert b"".join(log) == lab.text(run)
    qtbot.waitUntil(lambda: states[-1] == "ok", timeout=LONG)


def test_a_run_deleted_while_the_daemon_was_away_disappears(qtbot, hub, lab):
    kept, deleted = lab.submit("kept", steps=1), lab.submit("deleted", steps=1)
    lab.wait_until_over(kept)
    lab.wait_until_over(deleted)
    qtbot.waitUntil(lambda: {kept.run_id, deleted.run_id} <= hub.runs.keys(), timeout=LONG)
    gone = []
    hub.runs_changed.connect(lambda change: gone.extend(change.deleted))

    lab.kill_daemon()
    lab.restart_daemon()
    lab.client.delete_run(deleted.run_id)

    qtbot.waitUntil(lambda: deleted.run_id in gone, timeout=LONG)
    assert set(hub.runs) == {kept.run_id}


def test_a_daemon_that_hangs_is_reported_and_the_window_still_closes(qtbot, hub, lab, monkeypatch):
    monkeypatch.setattr(link, "HEALTH_WITHIN_S", 0.5)
    monkeypatch.setattr(link, "HEALTH_EVERY_S", 0.1)
    run = lab.submit("long", steps=100_000, rate=50)
    qtbot.waitUntil(lambda: is_ok(hub) and run.run_id in hub.runs, timeout=LONG)
    hub.follow(run.run_id, logs=True)
    pid = lab.daemon_pid()
    call = []

    async def wait_for_it(client):
        call.append("begun")
        try:
            await client.get_run(run.run_id)
        except asyncio.CancelledError:
            call.append("cancelled")
            raise

    os.kill(pid, signal.SIGSTOP)
    try:
        qtbot.waitUntil(lambda: hub.connection.state == "lost", timeout=LONG)
        hub.ask(wait_for_it)
        qtbot.waitUntil(lambda: call == ["begun"], timeout=LONG)
        problem = hub.connection.problem
        hub.stop()
    finally:
        os.kill(pid, signal.SIGCONT)

    assert "has not answered" in problem
    assert call == ["begun", "cancelled"]  # closing did not wait for the daemon's answer


def test_a_daemon_that_was_stopped_for_a_while_is_ok_again(qtbot, hub, lab, monkeypatch):
    monkeypatch.setattr(link, "HEALTH_WITHIN_S", 0.5)
    monkeypatch.setattr(link, "HEALTH_EVERY_S", 0.1)
    qtbot.waitUntil(lambda: is_ok(hub), timeout=LONG)
    pid = lab.daemon_pid()

    os.kill(pid, signal.SIGSTOP)
    qtbot.waitUntil(lambda: hub.connection.state == "lost", timeout=LONG)
    os.kill(pid, signal.SIGCONT)

    qtbot.waitUntil(lambda: is_ok(hub), timeout=LONG)
    assert hub.connection.health.disk_free_bytes > 0


def test_the_hub_finds_a_daemon_that_starts_later(qtbot, make_hub, lab):
    lab.stop_daemon()
    hub = make_hub(lambda: AsyncTrainerClient.connect(lab.root, start=False))
    qtbot.waitUntil(lambda: hub.connection.state == "lost", timeout=LONG)
    problem = hub.connection.problem

    lab.restart_daemon()

    qtbot.waitUntil(lambda: is_ok(hub), timeout=LONG)
    assert "mosaic daemon start" in problem


def test_a_folder_of_another_user_is_named(qtbot, make_hub, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    hub = make_hub(lambda: AsyncTrainerClient.connect(StateRoot(tmp_path), start=False))

    qtbot.waitUntil(lambda: hub.connection.state == "lost", timeout=LONG)

    assert str(tmp_path) in hub.connection.problem


@pytest.mark.parametrize("error", [NotAllowed("The token is wrong."), ValueError("odd")])
def test_any_error_of_the_connection_is_said_and_tried_again(qtbot, make_hub, monkeypatch, error):
    monkeypatch.setattr(link, "FIRST_PAUSE_S", 0.01)
    attempts = []

    async def connect():
        attempts.append(1)
        raise error

    hub = make_hub(connect)

    qtbot.waitUntil(lambda: len(attempts) >= 3 and str(error) in hub.connection.problem, timeout=LONG)


def test_a_call_without_a_daemon_fails_with_the_reason(qtbot, make_hub, monkeypatch):
    monkeypatch.setattr(link, "CLIENT_WITHIN_S", 0.3)

    async def connect():
        raise NoDaemon("No daemon is running.")

    hub, errors = make_hub(connect), []
    qtbot.waitUntil(lambda: hub.connection.state == "lost", timeout=LONG)

    hub.ask(lambda client: client.health(), failed=errors.append)

    qtbot.waitUntil(lambda: bool(errors), timeout=LONG)
    assert str(errors[0]) == "No daemon is running."


def test_a_daemon_of_another_version_is_named(qtbot, hub, monkeypatch):
    monkeypatch.setattr(link, "__version__", "0.0.1")

    qtbot.waitUntil(lambda: bool(hub.connection.warning), timeout=LONG)

    assert "this window is 0.0.1" in hub.connection.warning
    assert is_ok(hub) or not hub.runs
