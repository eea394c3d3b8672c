"""Lanes by hand: a real daemon, a real conductor, real keys."""

from dataclasses import replace

import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QLineEdit, QMessageBox, QPlainTextEdit, QPushButton

from mosaic.client.lanes import ASKING
from mosaic.gui.hub.connection import RunsChange
from mosaic.model.states import RunState
from mosaic.present.lane_cards import card_of

WAIT = 30_000
TWO = {"chance": "random", "me": "human"}


def find(view, name, kind=QPushButton):
    return view.findChild(kind, name)


def lanes_of(view):
    return view.session.evaluation.lanes


def steps_of(view):
    return [lane.step_index + 1 for lane in lanes_of(view)]


def ask(qtbot, view, key=Qt.Key.Key_S):
    QTest.keyClick(view, key)
    qtbot.waitUntil(lambda: view.session.desk.request is not None, timeout=WAIT)


def test_a_person_answers_with_the_keys_on_the_screen(qtbot, open_lanes):
    view = open_lanes(TWO)

    ask(qtbot, view)

    question = find(view, "operators.question", QLabel)
    assert question.text() == "me, lane 1: choose an action"
    assert [made.text() for made in view.question.findChildren(QPushButton)] == ["a ←  left", "d  right"]
    assert view.grid.cards[1].property("mark") == "asked"
    assert lanes_of(view)[1].state == ASKING
    QTest.keyClick(view, Qt.Key.Key_D)
    qtbot.waitUntil(lambda: steps_of(view) == [1, 1], timeout=WAIT)
    assert view.grid.cards[1].picture.words.toPlainText() == ".@..G"
    assert lanes_of(view)[1].action_name == "right"
    assert question.text().startswith("Nobody is asked")


def test_a_click_answers_too_and_space_of_a_focused_button_plays(qtbot, open_lanes):
    view = open_lanes(TWO)
    step = find(view, "operators.step")
    step.setFocus()

    QTest.mouseClick(step, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: view.session.desk.request is not None, timeout=WAIT)
    QTest.mouseClick(view.question.findChildren(QPushButton)[1], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: steps_of(view) == [1, 1] and not view.session.is_busy, timeout=WAIT)
    QTest.keyClick(step, Qt.Key.Key_Space)

    qtbot.waitUntil(lambda: view.session.evaluation.state == "playing", timeout=WAIT)


def test_step_play_pause_reset_and_seed(qtbot, open_lanes):
    view = open_lanes({"a": "passive", "b": "random"})

    QTest.keyClick(view, Qt.Key.Key_S)
    qtbot.waitUntil(lambda: steps_of(view) == [1, 1], timeout=WAIT)
    QTest.keyClick(view, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: find(view, "operators.play").text() == "Pause", timeout=WAIT)
    QTest.mouseClick(find(view, "operators.play"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: find(view, "operators.play").text() == "Play", timeout=WAIT)
    QTest.mouseClick(view.grid.cards[1], Qt.MouseButton.LeftButton)
    seed = find(view, "operators.seed", QLineEdit)
    seed.setFocus()
    QTest.keyClicks(seed, "77")
    QTest.keyClick(seed, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: lanes_of(view)[1].seed == 77, timeout=WAIT)

    assert lanes_of(view)[0].seed == 3


def test_keys_stay_in_a_text_field(qtbot, open_lanes):
    view = open_lanes({"a": "passive"})
    seed = find(view, "operators.seed", QLineEdit)
    seed.setFocus()

    QTest.keyClicks(seed, "s 1")
    QTest.keyClick(seed, Qt.Key.Key_Return)

    assert "must be an integer" in view.bar.note
    assert steps_of(view) == [0]


def test_a_refused_command_is_shown_in_words(qtbot, open_lanes):
    view = open_lanes({"a": "passive"})
    for _ in range(5):
        QTest.keyClick(view, Qt.Key.Key_S)

    qtbot.waitUntil(lambda: "no lane has an episode" in view.bar.note, timeout=WAIT)


def test_finish_asks_and_shows_the_results(qtbot, open_lanes):
    view = open_lanes({"a": "passive", "b": "random"})
    for _ in range(4):
        QTest.keyClick(view, Qt.Key.Key_S)
    qtbot.waitUntil(lambda: lanes_of(view)[0].episodes_done == 1, timeout=WAIT)

    QTest.keyClick(view, Qt.Key.Key_F)
    box = view.findChild(QMessageBox, "confirm")
    assert "cannot be continued" in box.text()
    QTest.mouseClick(box.findChild(QPushButton, "confirm.yes"), Qt.MouseButton.LeftButton)

    qtbot.waitUntil(lambda: bool(view.results.tables), timeout=WAIT)
    assert view.results.tables[0].item(0, 0).text() == "a"
    assert not view.grid.isVisible()
    assert view.results.isVisible()


def test_a_lane_that_fails_says_why_and_the_others_go_on(qtbot, open_lanes):
    view = open_lanes({"me": {"kind": "human", "time_limit_s": 0.2}, "a": "passive"})

    QTest.keyClick(view, Qt.Key.Key_S)

    texts = view.grid.cards[0].findChildren(QPlainTextEdit)
    box = next(one for one in texts if "Failure" in one.accessibleName())
    qtbot.waitUntil(lambda: "no action in 0.2 s" in box.toPlainText(), timeout=WAIT)
    QTest.keyClick(view, Qt.Key.Key_S)
    qtbot.waitUntil(lambda: lanes_of(view)[1].step_index == 1, timeout=WAIT)
    assert box.isVisible()


def test_a_killed_daemon_loses_nothing(qtbot, open_lanes, lab):
    view = open_lanes(TWO)
    ask(qtbot, view)

    lab.kill_daemon()
    qtbot.waitUntil(lambda: "Reconnecting" in view.bar.note, timeout=WAIT)
    QTest.keyClick(view, Qt.Key.Key_D)
    lab.restart_daemon()

    qtbot.waitUntil(lambda: steps_of(view) == [1, 1], timeout=2 * WAIT)
    qtbot.waitUntil(lambda: find(view, "operators.step").isEnabled(), timeout=WAIT)
    ask(qtbot, view)


def test_hidden_it_rests_and_comes_back(qtbot, open_lanes, page):
    view = open_lanes({"a": "passive"})
    QTest.keyClick(view, Qt.Key.Key_S)
    qtbot.waitUntil(lambda: steps_of(view) == [1], timeout=WAIT)

    page.hide()
    assert view.session._feed is None
    page.show()

    qtbot.waitUntil(lambda: steps_of(view) == [1], timeout=WAIT)


@pytest.mark.parametrize("words", ["<b>bold</b>", "\x1b[31mred"])
def test_names_and_words_are_plain_text(qtbot, open_lanes, words):
    view = open_lanes({"a": "passive"})
    card, lane = view.grid.cards[0], lanes_of(view)[0]
    shown = card_of(replace(lane, text=words, name=words), view.session.evaluation)
    card.show_lane(shown, lane, False, False)

    assert card._words.toPlainText() == words.replace("\x1b[31m", "")
    assert card._name.textFormat() is Qt.TextFormat.PlainText


def test_a_value_is_typed_where_there_are_no_choices(qtbot, open_lanes):
    view = open_lanes(TWO)
    ask(qtbot, view)
    request = replace(view.session.desk.request, choices=())
    view.question.show_request(replace(request, request="other"), lanes_of(view))
    field = view.question._typed

    QTest.keyClicks(field, "[1")
    QTest.keyClick(field, Qt.Key.Key_Return)

    assert field.isVisible()
    assert "must be a number or a list of numbers" in view.question._wrong.text()


def test_a_view_that_was_replaced_does_nothing_more(qtbot, context, page, open_lanes):
    first = open_lanes({"chance": "random"})
    second = open_lanes({"chance": "random"})
    qtbot.waitUntil(lambda: not shiboken6.isValid(first), timeout=WAIT)

    with qtbot.captureExceptions() as failures:
        context.hub.connection_changed.emit(context.hub.connection)

    assert failures == []
    assert page.evaluation is second


def test_an_answer_after_the_end_of_the_run_changes_nothing(qtbot, context, open_lanes):
    view = open_lanes({"chance": "random"})
    session = view.session
    over = replace(session.run, state=RunState.TERMINATED)

    session.send([{"cmd": "step"}])
    context.hub.runs_changed.emit(RunsChange((over,)))
    assert not session.is_busy

    with qtbot.captureExceptions() as failures:
        qtbot.waitUntil(lambda: steps_of(view) == [1], timeout=WAIT)
        later = []
        context.hub.ask(lambda client: client.get_run(session.run_id), later.append)
        qtbot.waitUntil(lambda: bool(later), timeout=WAIT)
    assert failures == []
