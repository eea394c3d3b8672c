"""The hub with a real daemon and real runs."""

import sys
import threading

from PySide6.QtCore import QObject

from mosaic.client.events import Step
from mosaic.gui.hub.hub import TelemetryAsyncHub
from mosaic.model.errors import UnknownRun
from mosaic.model.run import RunConfig, WorkerSpec
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.registry.registry import Registry

LONG = 60_000


def test_a_submitted_run_appears(qtbot, hub, lab):
    run = lab.submit("first", steps=5, seed=4)

    qtbot.waitUntil(lambda: run.run_id in hub.runs and hub.runs[run.run_id].state is RunState.TERMINATED, timeout=LONG)
    assert hub.runs[run.run_id].seed == 4


def test_a_call_is_answered_in_the_thread_of_the_window(qtbot, hub, lab):
    run = lab.submit("asked", steps=5)
    answers = []

    hub.ask(
        lambda client: client.get_run(run.run_id),
        lambda found: answers.append((found.run_id, threading.current_thread())),
    )

    qtbot.waitUntil(lambda: answers == [(run.run_id, threading.main_thread())], timeout=LONG)


def test_a_call_that_fails_gives_the_error(qtbot, hub):
    errors = []

    hub.ask(lambda client: client.get_run("nobody"), failed=errors.append)

    qtbot.waitUntil(lambda: bool(errors), timeout=LONG)
    assert isinstance(errors[0], UnknownRun)


def test_a_computation_runs_in_another_thread(qtbot, hub):
    names = []

    hub.compute(lambda: threading.current_thread().name, names.append)

    qtbot.waitUntil(lambda: bool(names), timeout=LONG)
    assert names[0] != threading.current_thread().name


def test_a_failure_that_no_view_shows_is_in_the_log(qtbot, hub, caplog):
    hub.compute(lambda: 1 / 0)

    qtbot.waitUntil(lambda: "no view shows why" in caplog.text, timeout=LONG)
    assert "ZeroDivisionError" in caplog.text


def test_the_answer_for_an_owner_that_is_gone_is_dropped(qtbot, hub):
    owner, answers, others = QObject(), [], []

    hub.compute(lambda: 1, answers.append, owner=owner)
    owner.deleteLater()
    hub.compute(lambda: 2, others.append)

    qtbot.waitUntil(lambda: bool(others), timeout=LONG)
    qtbot.wait(100)
    assert answers == []


def test_a_cancelled_job_calls_nobody(qtbot, hub):
    answers, others = [], []

    hub.compute(lambda: 1, answers.append).cancel()
    hub.compute(lambda: 2, others.append)

    qtbot.waitUntil(lambda: bool(others), timeout=LONG)
    assert answers == []


def test_an_error_in_a_callback_is_reported_and_the_next_one_is_called(qtbot, hub, monkeypatch):
    reported, answers = [], []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, traceback: reported.append(kind))

    hub.compute(lambda: 1, lambda _: [].pop())
    hub.compute(lambda: 2, answers.append)

    qtbot.waitUntil(lambda: answers == [2] and reported == [IndexError], timeout=LONG)


def test_after_stop_nothing_is_called_and_a_second_stop_does_nothing(qtbot, hub):
    answers = []
    hub.compute(lambda: 1, answers.append)

    hub.stop()
    hub.stop()
    hub.ask(lambda client: client.health(), answers.append)
    hub.compute(lambda: 1, answers.append)
    qtbot.wait(100)

    assert answers == []


def test_a_hub_that_was_never_started_can_be_stopped(qapp):
    TelemetryAsyncHub(lambda: None).stop()


# ---- feeds


def test_the_events_of_a_run_arrive(qtbot, hub, lab):
    run = lab.submit("followed", steps=20)
    events = []

    feed = hub.follow(run.run_id)
    feed.received.connect(lambda batch: events.extend(batch.events))

    with qtbot.waitSignal(feed.ended, timeout=LONG):
        pass
    assert sum(event.type == "step" for event in events) == 20


def test_a_feed_ends_with_its_owner(qtbot, hub, lab):
    run = lab.submit("owned", steps=100_000, rate=200)
    owner, batches = QObject(), []
    feed = hub.follow(run.run_id, owner=owner)
    feed.received.connect(batches.append)
    qtbot.waitUntil(lambda: bool(batches), timeout=LONG)

    owner.deleteLater()
    qtbot.waitUntil(lambda: feed._is_closed, timeout=LONG)
    count = len(batches)
    qtbot.wait(300)

    assert len(batches) == count


def test_the_feed_of_a_deleted_run_fails_once_in_words(qtbot, hub, lab):
    run = lab.submit("deleted", steps=5)
    lab.wait_until_over(run)
    lab.client.delete_run(run.run_id)
    problems = []

    feed = hub.follow(run.run_id, logs=True)
    feed.failed.connect(problems.append)

    qtbot.waitUntil(lambda: bool(problems), timeout=LONG)
    qtbot.wait(200)
    assert len(problems) == 1
    assert run.run_id in problems[0]


def test_a_hundred_thousand_events_arrive_once_in_order_and_in_few_batches(qtbot, hub, lab):
    run = lab.submit("many", steps=100_000, episode_length=1000)
    lab.wait_until_over(run, timeout_s=180)
    seqs, batches = [], []

    feed = hub.follow(run.run_id, tail=0)
    feed.received.connect(lambda batch: (seqs.extend(event.seq for event in batch.events), batches.append(batch)))
    with qtbot.waitSignal(feed.ended, timeout=120_000):
        pass

    total = lab.client.get_run(run.run_id).summary.events
    assert seqs == list(range(1, total + 1))
    assert all(not batch.missed for batch in batches)


def test_a_slow_window_misses_steps_only_and_can_fetch_them(qtbot, hub, lab):
    run = lab.submit("slow", steps=30_000, episode_length=100, metrics_every=500)
    lab.wait_until_over(run, timeout_s=120)
    events, missed, fetched = [], [], []
    feed = hub.follow(run.run_id, tail=100_000)
    feed._backlog._soft_bytes = 300 * 1000
    feed.received.connect(lambda batch: (events.extend(batch.events), missed.extend(batch.missed)))
    hub._timer.stop()  # a window that is busy
    qtbot.waitUntil(lambda: feed._readers and feed._backlog._thinned is not None, timeout=LONG)
    qtbot.wait(1500)
    hub._timer.start()
    with qtbot.waitSignal(feed.ended, timeout=LONG):
        pass

    total = lab.client.get_run(run.run_id).summary.events
    seen = {event.seq for event in events}
    lost = set(range(1, total + 1)) - seen
    assert len(seen) == len(events)
    assert lost
    assert all(any(first <= seq <= last for first, last in missed) for seq in lost)
    assert sum(event.type == "episode" for event in events) == 300

    feed.received.connect(lambda batch: fetched.extend(batch.events))
    for first, last in missed:
        feed.fetch(first, last)
    qtbot.waitUntil(lambda: len(fetched) >= len(lost), timeout=LONG)
    assert {event.seq for event in fetched} >= lost
    assert all(isinstance(event, Step) for event in fetched)


def test_a_thousand_runs_arrive_in_one_signal(qtbot, lab, hub):
    lab.stop_daemon()
    registry = Registry.open(lab.root.registry)
    for number in range(1000):
        run_id = new_ulid()
        registry.add(RunConfig(run_id, f"run {number}", "runs", "toy", WorkerSpec(module="toy_worker.cli")))
        registry.move(run_id, RunState.CANCELLED)
    registry.close()
    changes = []
    hub.runs_changed.connect(changes.append)

    lab.restart_daemon()

    qtbot.waitUntil(lambda: len(hub.runs) == 1000, timeout=LONG)
    assert [len(change.runs) for change in changes if change.runs] == [1000]
