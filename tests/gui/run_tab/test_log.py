"""The log of a run: search, follow, streams, and very many lines."""

import pytest
from PySide6.QtCore import Qt

from mosaic.gui.run_tab.log_view import LogView
from mosaic.gui.run_tab.tab import RunTab
from mosaic.present.log_lines import LogLine

WAIT_MS = 30_000


def is_listed(hub, run):
    """Whether the hub knows the run as it is by now, or newer."""
    return run.run_id in hub.runs and hub.runs[run.run_id].revision >= run.revision


@pytest.fixture
def open_log(qtbot, context):
    tabs = []  # qtbot keeps only weak references

    def open_it(run):
        qtbot.waitUntil(lambda: is_listed(context.hub, run), timeout=WAIT_MS)
        tab = RunTab(context, run.run_id, "log")
        qtbot.addWidget(tab)
        tab.resize(1000, 500)
        tab.show()
        tabs.append(tab)
        return tab.section_widget("log")

    return open_it


def test_search_finds_counts_and_moves(qtbot, lab, open_log):
    run = lab.wait_until_over(lab.submit("spoken", steps=100, text_every=10, stderr_lines=40))
    log = open_log(run)
    qtbot.waitUntil(lambda: len(log.view.shown) >= 50, timeout=WAIT_MS)

    qtbot.keyClick(log, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClicks(log.bar.search, "line 1")

    assert log.bar.found.text() == "11 of 11"  # 1 and 10 to 19; the newest first
    qtbot.mouseClick(log.bar.next, Qt.MouseButton.LeftButton)
    assert log.bar.found.text() == "1 of 11"
    assert log.view.textCursor().block().text() == "toy: line 1 on stderr"
    assert not log.view.is_following
    log.bar.search.setText("no such words")
    assert log.bar.found.text() == "No match"


def test_a_stream_can_be_chosen(qtbot, lab, open_log):
    run = lab.wait_until_over(lab.submit("two", steps=100, text_every=10, stderr_lines=5, garbage_every=4))
    log = open_log(run)
    qtbot.waitUntil(lambda: {line.stream for line in log.view.shown} == {"stdout", "stderr"}, timeout=WAIT_MS)

    log.bar.stream.setCurrentText("Only stderr")
    qtbot.waitUntil(lambda: {line.stream for line in log.view.shown} == {"stderr"}, timeout=WAIT_MS)
    log.bar.stream.setCurrentText("Only problems")

    qtbot.waitUntil(lambda: {line.is_problem for line in log.view.shown} == {True}, timeout=WAIT_MS)


def test_all_of_the_log_can_be_loaded(qtbot, lab, open_log):
    run = lab.wait_until_over(lab.submit("long", steps=10, stderr_lines=30_000))
    log = open_log(run)
    qtbot.waitUntil(lambda: len(log.view.shown) > 1000 and not log.view.is_filling, timeout=WAIT_MS)
    assert len(log.view.shown) < 30_000

    qtbot.mouseClick(log.bar.load_all, Qt.MouseButton.LeftButton)

    qtbot.waitUntil(lambda: len(log.view.shown) >= 30_000 and not log.view.is_filling, timeout=WAIT_MS)
    assert log.view.shown[0].text == "toy: line 0 on stderr" or log.view.shown[0].stream == "stdout"


def test_who_leaves_while_all_is_read_can_ask_for_it_again(qtbot, lab, open_log):
    run = lab.wait_until_over(lab.submit("long", steps=10, stderr_lines=30_000))
    log = open_log(run)
    qtbot.waitUntil(lambda: len(log.view.shown) > 1000 and not log.view.is_filling, timeout=WAIT_MS)

    log.load_all()
    log.leave()
    log.enter()

    assert log.bar.load_all.isEnabled()
    qtbot.waitUntil(lambda: log.bar.count.text().startswith("the end of the log"), timeout=WAIT_MS)
    qtbot.mouseClick(log.bar.load_all, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(log.view.shown) >= 30_000 and not log.view.is_filling, timeout=WAIT_MS)


def test_following_stops_when_the_reader_scrolls_up(qtbot, context):
    view = LogView(context.theme, 1000)
    qtbot.addWidget(view)
    view.resize(400, 200)
    view.show()
    view.add([LogLine("stdout", f"line {number}") for number in range(300)])
    qtbot.waitUntil(lambda: not view.is_filling)
    view.setFocus()

    qtbot.keyClick(view, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    assert not view.is_following
    view.add([LogLine("stdout", "more")])
    assert view.verticalScrollBar().value() == 0
    view.follow()

    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


def test_a_million_lines_are_bounded(qtbot, context):
    view = LogView(context.theme, 5000)
    qtbot.addWidget(view)
    view.show()

    view.add(LogLine("stdout", f"{number}") for number in range(1_000_000))
    qtbot.waitUntil(lambda: not view.is_filling, timeout=WAIT_MS)

    assert view.blockCount() == 5000
    assert view.document().firstBlock().text() == view.shown[0].text == "995000"
