"""The table of runs: filter, sort, group, select, copy; and ten thousand rows of which only the visible are touched."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton

from mosaic.gui.runs.empty import FIRST_RUN, FIRST_TOY
from mosaic.gui.runs.table import KEYS
from mosaic.model.states import RunState
from mosaic.present.run_cells import COLUMNS

Key = Qt.Key


def shown_columns(page):
    return {key for place, key in enumerate(KEYS) if not page.table.isColumnHidden(place)}


def click_heading(qtbot, page, key):
    header = page.table.horizontalHeader()
    place = KEYS.index(key)
    x = header.sectionViewportPosition(place) + header.sectionSize(place) // 2
    QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(x, header.height() // 2))


def test_typing_a_filter_narrows_the_list_and_clearing_it_brings_all_back(qtbot, make_listing, make_runs):
    listing = make_listing(make_runs(30))
    page = listing.page

    QTest.keyClicks(page.filter_field, "state:failed algo:ppo")
    qtbot.waitUntil(lambda: len(listing.names) == 2)

    assert page.findChild(QLabel, "runs.count").text() == "2 of 30 runs"
    QTest.keyClick(page.filter_field, Key.Key_Escape)
    qtbot.waitUntil(lambda: len(listing.names) == 30)


def test_a_bad_filter_says_what_is_wrong_and_the_last_good_list_stays(qtbot, make_listing, make_runs):
    listing = make_listing(make_runs(30))
    page, words = listing.page, listing.page.findChild(QLabel, "runs.filter_problem")
    QTest.keyClicks(page.filter_field, "state:failed")
    qtbot.waitUntil(lambda: len(listing.names) == 6)

    QTest.keyClicks(page.filter_field, " return>abc")
    qtbot.waitUntil(words.isVisible)

    assert words.text() == 'return: must be a number, not "abc".'
    assert (len(listing.names), page.filter_field.property("wrong")) == (6, True)
    page.clear_filter()
    assert not words.isVisible()


def test_no_match_offers_to_clear_the_filter(qtbot, make_listing, make_runs):
    listing = make_listing(make_runs(3))
    QTest.keyClicks(listing.page.filter_field, "<b>nothing</b>")
    clear = listing.page.findChild(QPushButton, "runs.clear")
    qtbot.waitUntil(clear.isVisible)

    assert any(
        found.text() == "No run matches <b>nothing</b>" and found.textFormat() is Qt.TextFormat.PlainText
        for found in listing.page.findChildren(QLabel)
    )
    QTest.mouseClick(clear, Qt.MouseButton.LeftButton)

    assert len(listing.names) == 3
    assert listing.page.table.isVisible()


def test_a_click_on_a_heading_sorts_and_another_turns_the_order_round(qtbot, make_listing, make_run):
    runs = [make_run(number, name=name) for number, name in enumerate(("b", "c", "a"))]
    listing = make_listing(runs)

    before = listing.names
    click_heading(qtbot, listing.page, "name")
    once = listing.names
    click_heading(qtbot, listing.page, "name")

    assert (before, once, listing.names) == (["a", "c", "b"], ["a", "b", "c"], ["c", "b", "a"])
    assert listing.page.model.headerData(0, Qt.Orientation.Horizontal) == "Name ▾"


def test_nothing_jumps_when_runs_change_appear_and_go(qtbot, make_listing, make_runs, make_run):
    listing = make_listing(make_runs(500))
    table, model = listing.page.table, listing.page.model
    table.verticalScrollBar().setValue(3005)
    table.selectRow(105)
    chosen, top = table.runs()[0].run_id, table.indexAt(QPoint(5, 5)).data()
    y = table.rowViewportPosition(105)

    listing.report(make_run(900, name="new"), deleted=[model.run_at(3).run_id, model.run_at(400).run_id])
    listing.report(replace(listing.hub.runs[chosen], state=RunState.FAULTED), make_run(901), make_run(902))

    assert [run.run_id for run in table.runs()] == [chosen]
    assert table.indexAt(QPoint(5, 5)).data() == top
    assert table.rowViewportPosition(table.currentIndex().row()) == y
    assert listing.names[:3] == ["run 902", "run 901", "new"]


def test_the_selection_survives_sorting_filtering_and_a_whole_list(qtbot, make_listing, make_runs):
    runs = make_runs(100)
    listing = make_listing(runs)
    table = listing.page.table
    table.select([runs[7].run_id, runs[10].run_id], runs[10].run_id)

    click_heading(qtbot, listing.page, "return")
    listing.page.filter_field.setText("env:cartpole")
    listing.page.filter_field.apply()
    listing.report(*runs, is_whole=True)

    assert {run.run_id for run in table.runs()} == {runs[10].run_id}
    listing.page.group_by("state")
    assert table.current_run().run_id == runs[10].run_id


def test_of_ten_thousand_rows_only_the_visible_are_announced_and_read(qtbot, make_listing, make_runs, monkeypatch):
    runs = make_runs(10_000)
    listing = make_listing(runs)
    model, rows_read, announced = listing.page.model, set(), []
    read = model.row_at
    monkeypatch.setattr(model, "row_at", lambda row: rows_read.add(row) or read(row))
    model.dataChanged.connect(lambda first, last, *_: announced.append((first.row(), last.row())))
    fit = listing.page.table.viewport().height() // 30 + 2

    listing.report(*(replace(run, revision=run.revision + 1) for run in runs))
    listing.page.model.tick()
    listing.page.table.viewport().repaint()

    assert sum(last - first + 1 for first, last in announced) <= 2 * fit
    assert 0 < len(rows_read) <= fit
    rows_read.clear()
    listing.page.table.verticalScrollBar().setValue(150_000)
    listing.page.table.viewport().repaint()
    assert 0 < len(rows_read) <= fit
    assert min(rows_read) >= 5000


def test_a_change_of_a_row_out_of_sight_announces_nothing(make_listing, make_runs):
    runs = make_runs(1000)
    listing = make_listing(runs)
    announced = []
    listing.page.model.dataChanged.connect(lambda *_: announced.append(1))

    listing.report(replace(runs[0], revision=5))

    assert announced == []


def test_copied_rows_are_tab_separated_with_headings(qtbot, make_listing, make_run):
    listing = make_listing([make_run(1, name="a\tb", algo="ppo"), make_run(2, "FAULTED", reason="exit code 1")])
    table = listing.page.table
    table.setFocus()

    QTest.keyClick(table, Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(table, Key.Key_C, Qt.KeyboardModifier.ControlModifier)

    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].split("\t")[:3] == ["Name", "State", "Algorithm"]
    assert [line.split("\t")[0] for line in lines[1:]] == ["run 2", "a b"]
    assert len({line.count("\t") for line in lines}) == 1


@pytest.mark.parametrize("width", [480, 920, 1100, 1900])
def test_the_four_most_important_columns_are_always_shown_and_nothing_is_cut_off(make_listing, make_runs, width):
    listing = make_listing(make_runs(5), size=(width, 600))
    table = listing.page.table

    assert {"name", "state", "progress", "return"} <= shown_columns(listing.page)
    assert listing.page.width() == width
    assert table.horizontalHeader().length() <= table.viewport().width()
    assert ("note" in shown_columns(listing.page)) == (width >= 1100)


def test_columns_are_chosen_and_remembered(make_listing, make_runs):
    listing = make_listing(make_runs(5), size=(1900, 600))
    menu = listing.page._column_menu

    next(action for action in menu.menu.actions() if action.text() == "Worker").trigger()
    listing.page.table.horizontalHeader().resizeSection(KEYS.index("env"), 222)
    listing.page.sort_by("return")
    again = make_listing(make_runs(5), size=(1900, 600))

    assert "worker" not in shown_columns(again.page)
    assert again.page.table.columnWidth(KEYS.index("env")) == 222
    assert again.page.model.headerData(KEYS.index("return"), Qt.Orientation.Horizontal) == "Return ▾"


@pytest.mark.parametrize("damage", ["=,=,,=5", "name=-3,x=9,env=99999999999", "\x00"])
def test_a_damaged_memory_means_the_defaults(make_listing, make_runs, tmp_path, damage):
    first = make_listing()
    for name in ("hidden", "widths", "order"):
        first.context.memory.remember(f"runs/columns/{name}", damage)
    first.context.memory.remember("runs/sort", damage)
    first.context.memory.remember("runs/group", damage)

    assert len(make_listing(make_runs(5)).names) == 5


def test_groups_have_headings_that_enter_closes_and_opens(make_listing, make_runs):
    listing = make_listing(make_runs(10))
    page = listing.page

    page.group_by("env")
    page.table.setFocus()
    page.table.selectRow(0)
    QTest.keyClick(page.table, Key.Key_Return)
    closed = listing.names
    QTest.keyClick(page.table, Key.Key_Return)

    assert closed[:2] == ["CartPole-v1  (5)", "Pong  (5)"]
    assert len(listing.names) == 12
    assert listing.context.go.calls == []


def test_keys_go_from_the_filter_to_the_table_and_open_a_run(qtbot, make_listing, make_runs):
    listing = make_listing(make_runs(5))
    page = listing.page
    page.activateWindow()
    page.table.setFocus()

    QTest.keyClick(page, Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(page.filter_field.hasFocus)
    QTest.keyClick(page.filter_field, Key.Key_Down)
    QTest.keyClick(page.table, Key.Key_Down)
    QTest.keyClick(page.table, Key.Key_Return)

    assert listing.context.go.calls == [("open_run", (page.model.run_at(1).run_id,), {})]


def test_names_are_shown_as_text_and_tooltips_are_escaped(make_listing, make_run):
    evil = "<img src=x onerror=1>\x1b[31m\u202e" + "n" * 500
    listing = make_listing([make_run(1, "FAULTED", name=evil, reason=evil, env_id=evil, algo=evil, worker_name=evil)])

    for column in range(len(COLUMNS)):
        index = listing.page.model.index(0, column)
        assert index.data().isprintable()
        assert "<img" not in (index.data(Qt.ItemDataRole.ToolTipRole) or "")
    assert not listing.page.grab().isNull()


def test_a_run_can_be_selected_before_it_is_listed(make_listing, make_run):
    listing = make_listing([make_run(1)])

    listing.page.select(make_run(2).run_id)
    listing.report(make_run(2))

    assert [run.name for run in listing.page.table.runs()] == ["run 2"]


def test_without_runs_the_page_offers_a_first_run(make_listing):
    listing = make_listing()

    for name in ("runs.first", "runs.first_toy"):
        QTest.mouseClick(listing.page.findChild(QPushButton, name), Qt.MouseButton.LeftButton)

    assert listing.context.go.calls == [
        ("new_run", ("train",), {"worker": "cleanrl", "settings": FIRST_RUN}),
        ("new_run", ("train",), {"worker": "toy", "settings": FIRST_TOY}),
    ]


@pytest.mark.parametrize(("state", "words"), [("connecting", "Connecting…"), ("lost", "Reconnecting…")])
def test_without_a_daemon_the_page_says_so(make_listing, make_run, state, words):
    empty, full = make_listing(state=state), make_listing([make_run(1)], state=state)

    assert any(found.text() == words and found.isVisible() for found in empty.page.findChildren(QLabel))
    assert full.page.table.isVisible()
    assert full.page.findChild(QLabel, "runs.lost").isVisible() == (state == "lost")


def test_actions_that_do_not_apply_say_why(make_listing, make_run):
    listing = make_listing([make_run(1, "TERMINATED"), make_run(2)], host="user@box")
    page = listing.page
    page.table.select([make_run(1).run_id])
    actions = page.bar.actions_by_key

    assert (actions["cancel"].isEnabled(), "The run is over." in actions["cancel"].toolTip()) == (False, True)
    assert "user@box" in actions["folder"].toolTip()
    assert page.findChild(QPushButton, "runs.button.delete").isEnabled()
    page.table.selectAll()
    actions["compare"].trigger()
    assert listing.context.go.calls == [("compare", ([make_run(2).run_id, make_run(1).run_id],), {})]


def test_the_actions_follow_the_state_of_the_selected_run(make_listing, make_run):
    listing = make_listing([make_run(1)])
    listing.page.table.selectRow(0)
    before = listing.page.bar.actions_by_key["delete"].isEnabled()

    listing.report(make_run(1, "TERMINATED"))

    assert (before, listing.page.bar.actions_by_key["delete"].isEnabled()) == (False, True)
