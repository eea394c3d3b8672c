"""The tab of a run, with a real daemon and real runs of the toy worker."""

import dataclasses
import os

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from mosaic.gui.hub import backlog
from mosaic.gui.hub.backlog import Backlog
from mosaic.gui.run_tab.missed import MissedNote
from mosaic.gui.run_tab.panel import RunPanel
from mosaic.gui.run_tab.tab import RunTab
from mosaic.gui.widgets.empty import EmptyState

WAIT_MS = 30_000


def is_listed(hub, run):
    """Whether the hub knows the run as it is by now, or newer."""
    return run.run_id in hub.runs and hub.runs[run.run_id].revision >= run.revision


@pytest.fixture
def open_tab(qtbot, context):
    def open_it(run, section=""):
        qtbot.waitUntil(lambda: is_listed(context.hub, run), timeout=WAIT_MS)
        tab = RunTab(context, run.run_id, section)
        qtbot.addWidget(tab)
        tab.resize(1280, 720)
        tab.show()
        return tab

    return open_it


def child(tab, name):
    return tab.findChild(QPushButton, name)


def rows(table):
    return table.rows.rows


def test_the_curves_and_episodes_of_a_live_run_move(qtbot, lab, open_tab):
    run = lab.submit("live", steps=100_000, rate=500, episode_length=20)
    tab = open_tab(run, "curves")
    curves = tab.section_widget("curves")

    qtbot.waitUntil(lambda: "episode/return" in curves.grid.charts, timeout=WAIT_MS)
    points = len(curves.store.series(run.run_id, "episode/return", "env steps").x)
    qtbot.waitUntil(
        lambda: len(curves.store.series(run.run_id, "episode/return", "env steps").x) > points + 5, timeout=WAIT_MS
    )
    tab.show_section("overview")
    table = tab.section_widget("overview").episodes.table
    qtbot.waitUntil(lambda: len(rows(table)) > 5, timeout=WAIT_MS)
    newest = int(rows(table)[0][0].replace(",", ""))

    qtbot.waitUntil(lambda: int(rows(table)[0][0].replace(",", "")) > newest + 3, timeout=WAIT_MS)
    assert [int(row[0].replace(",", "")) for row in rows(table)][:2] == sorted(
        [int(row[0].replace(",", "")) for row in rows(table)][:2], reverse=True
    )
    assert "running" in tab.header.badge.text()
    qtbot.waitUntil(lambda: "steps/s" in tab.header.numbers.text(), timeout=WAIT_MS)


def test_a_hidden_tab_follows_nothing_and_catches_up(qtbot, lab, open_tab):
    run = lab.submit("hidden", steps=4000, rate=2000)
    tab = open_tab(run, "curves")
    curves = tab.section_widget("curves")
    qtbot.waitUntil(lambda: "episode/return" in curves.grid.charts, timeout=WAIT_MS)

    tab.hide()
    assert tab.source._feed is None
    lab.wait_until_over(run)
    tab.show()

    def is_complete():
        series = curves.store.series(run.run_id, "episode/return", "env steps")
        return len(series.x) and series.x[-1] == 4000

    qtbot.waitUntil(is_complete, timeout=WAIT_MS)


def test_a_failed_run_opens_on_its_reason(qtbot, lab, context, open_tab):
    run = lab.wait_until_over(lab.submit("crasher", steps=100, crash_at=50))
    tab = open_tab(run)
    failure = tab.section_widget("overview").failure

    qtbot.waitUntil(failure.isVisible, timeout=WAIT_MS)
    assert tab.section == "overview"
    assert "RuntimeError: toy worker was asked to crash at step 50" in failure.reason.text()
    assert "raise RuntimeError" in failure.evidence.toPlainText()
    qtbot.mouseClick(failure.again, Qt.MouseButton.LeftButton)
    assert context.go.visits[-1] == ("new_run", (), {"mode": "train", "run_id": run.run_id})
    history = tab.section_widget("overview").history.table
    qtbot.waitUntil(lambda: any("FAULTED" in row[0] for row in rows(history)[:1]), timeout=WAIT_MS)


def test_a_waiting_run_says_what_for(qtbot, lab, open_tab):
    lab.submit("big", resources={"cpus": 31.5}, steps=100_000, rate=10)
    run = lab.submit("waits", resources={"cpus": 20}, steps=10)
    lab.wait_until_run(run, lambda now: now.waiting_for, "something to wait for")
    tab = open_tab(run)

    qtbot.waitUntil(lambda: tab.header.explanation.text().startswith("waiting for"), timeout=WAIT_MS)
    assert tab.header.badge.text() == "◌ waiting"


def test_a_run_deleted_while_open_says_so(qtbot, lab, open_tab):
    run = lab.wait_until_over(lab.submit("doomed", steps=50))
    tab = open_tab(run, "curves")

    lab.client.delete_run(run.run_id)

    qtbot.waitUntil(tab.gone.isVisible, timeout=WAIT_MS)
    assert tab.gone.title.text() == "This run was deleted"
    tab.show_section("log")  # what the user does next must not raise


def test_a_damaged_store_is_a_problem_in_place(qtbot, lab, context, open_tab):
    run = lab.wait_until_over(lab.submit("damaged", steps=500))
    store = lab.rundir(run).telemetry
    lab.stop_daemon()
    for name in os.listdir(store.parent):
        if name.startswith("telemetry.sqlite-"):
            (store.parent / name).unlink()
    store.chmod(0o600)
    store.write_bytes(b"this is not a database" * 500)
    lab.restart_daemon()
    qtbot.waitUntil(lambda: context.hub.connection.state == "ok", timeout=WAIT_MS)
    tab = open_tab(run, "curves")
    curves = tab.section_widget("curves")

    qtbot.waitUntil(lambda: curves.problem.isVisible() or tab.problem.isVisible(), timeout=WAIT_MS)
    tab.show_section("settings")
    settings = tab.section_widget("settings")
    qtbot.waitUntil(lambda: ("steps", "500", "given") in rows(settings.table), timeout=WAIT_MS)


def test_the_daemon_dies_and_comes_back(qtbot, lab, context, open_tab):
    run = lab.wait_until_over(lab.submit("kept", steps=300))
    tab = open_tab(run, "overview")
    table = tab.section_widget("overview").episodes.table
    qtbot.waitUntil(lambda: len(rows(table)) == 6, timeout=WAIT_MS)

    lab.kill_daemon()
    qtbot.waitUntil(tab.lost.isVisible, timeout=WAIT_MS)
    assert "Reconnecting" in tab.lost.text()
    assert len(rows(table)) == 6  # what was there stays readable
    lab.restart_daemon()

    qtbot.waitUntil(lambda: not tab.lost.isVisible(), timeout=WAIT_MS)


def test_the_panel_shows_the_selected_run(qtbot, lab, context):
    first = lab.wait_until_over(lab.submit("first", steps=50))
    second = lab.wait_until_over(lab.submit("second", steps=50))
    qtbot.waitUntil(lambda: {first.run_id, second.run_id} <= context.hub.runs.keys(), timeout=WAIT_MS)
    panel = RunPanel(context)
    qtbot.addWidget(panel)
    panel.resize(1280, 340)
    panel.show()

    panel.set_run(first.run_id)
    assert panel.run_id == first.run_id
    assert "Opening first" in panel.findChild(EmptyState).title.text()  # at once: charts take a while to load
    qtbot.waitUntil(lambda: panel.tab is not None, timeout=WAIT_MS)
    panel.tab.show_section("settings")
    panel.set_run(second.run_id)

    assert panel.tab.section == "settings"
    qtbot.waitUntil(lambda: panel.tab.header.name.text() == "second", timeout=WAIT_MS)
    panel.set_run("")
    assert panel.run_id == ""
    assert panel.tab is None


def test_what_a_busy_window_has_skipped_can_be_fetched(qtbot, lab, context, open_tab, monkeypatch):
    monkeypatch.setattr(Backlog.__init__, "__defaults__", (100 * backlog.EVENT_BYTES, backlog.HARD_BYTES))
    run = lab.wait_until_over(lab.submit("skipped", steps=1500, episode_length=50))
    tab, hub, seqs = open_tab(run, "overview"), context.hub, []
    tab.source.received.connect(lambda batch: seqs.extend(event.seq for event in batch.events))
    feed, note = tab.source._feed, tab.findChild(MissedNote)
    hub._timer.stop()  # a window that is busy
    qtbot.waitUntil(lambda: feed._backlog._thinned is not None, timeout=WAIT_MS)
    hub._timer.start()
    qtbot.waitUntil(note.isVisible, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: run.summary.events in seqs, timeout=WAIT_MS)
    skipped = {seq for first, last in tab.source.missed for seq in range(first, last + 1)} - set(seqs)
    said, feed._backlog._soft_bytes = note.words.text(), backlog.SOFT_BYTES

    child(tab, "run.fetch").click()

    assert "skipped while the window was busy" in said
    assert skipped
    assert not note.isVisible()
    qtbot.waitUntil(lambda: skipped <= set(seqs), timeout=WAIT_MS)
    assert len(seqs) == len(set(seqs))


def test_the_folder_of_a_run_elsewhere_cannot_be_opened_here(qtbot, lab, context):
    run = lab.wait_until_over(lab.submit("far", steps=5))
    qtbot.waitUntil(lambda: is_listed(context.hub, run), timeout=WAIT_MS)
    tab = RunTab(dataclasses.replace(context, root=None, host="me@box"), run.run_id, "overview")
    qtbot.addWidget(tab)

    opener = child(tab, "run.open_folder")

    assert not opener.isEnabled()
    assert "The folder is on me@box" in opener.toolTip()
