"""The runs page with a real daemon: runs appear, are cancelled and deleted, and their folders are measured."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMessageBox, QPushButton

from mosaic.gui.runs.page import RunsPage
from mosaic.gui.runs.table import KEYS
from mosaic.model.states import RunState

WAIT_MS = 60_000


@pytest.fixture
def page(qtbot, context):
    page = RunsPage(context)
    qtbot.addWidget(page)
    page.resize(1900, 700)
    page.show()
    return page


def listed(page, run):
    return run.run_id in page.model.rows.place


def choose(qtbot, page, *runs):
    qtbot.waitUntil(lambda: all(listed(page, run) for run in runs), timeout=WAIT_MS)
    page.table.select([run.run_id for run in runs], runs[-1].run_id)


def choose_over(qtbot, page, *runs):
    """Select runs when the page knows that they are over."""

    def are_over():
        return all(listed(page, run) and page.model.rows.runs[run.run_id].state.is_over for run in runs)

    qtbot.waitUntil(are_over, timeout=WAIT_MS)
    choose(qtbot, page, *runs)


def confirm(qtbot, page):
    """Press the button of the question; return the question."""
    qtbot.waitUntil(lambda: page.findChild(QMessageBox) is not None, timeout=WAIT_MS)
    box = page.findChild(QMessageBox)
    sentence = box.text()
    QTest.mouseClick(box.findChild(QPushButton, "confirm.yes"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.findChild(QMessageBox) is None, timeout=WAIT_MS)
    return sentence


def test_a_run_appears_and_is_cancelled_through_the_menu(qtbot, lab, page):
    run = lab.submit("to be cancelled", steps=1_000_000, rate=50)
    choose(qtbot, page, run)

    page.bar.actions_by_key["cancel"].trigger()
    question = confirm(qtbot, page)
    qtbot.waitUntil(lambda: page.model.rows.runs[run.run_id].state is RunState.CANCELLED, timeout=WAIT_MS)

    assert question == 'Cancel "to be cancelled"? What it has stored is kept.'
    qtbot.waitUntil(lambda: not page.bar.actions_by_key["cancel"].isEnabled(), timeout=WAIT_MS)


def test_deleting_says_what_is_freed_before_and_after_and_the_rows_go(qtbot, lab, page, context):
    runs = [lab.submit(f"to be deleted {number}", steps=20) for number in range(2)]
    choose_over(qtbot, page, *runs)

    page.bar.actions_by_key["delete"].trigger()
    question = confirm(qtbot, page)
    qtbot.waitUntil(lambda: not any(listed(page, run) for run in runs), timeout=WAIT_MS)
    qtbot.waitUntil(lambda: len(context.notices.said) == 1, timeout=WAIT_MS)

    assert question.startswith("Delete 2 runs with telemetry, logs and checkpoints? This frees ")
    assert context.notices.said[0].startswith("Deleted 2 runs: ")
    assert context.notices.said[0].endswith(" freed.")
    assert not any(lab.rundir(run).path.exists() for run in runs)


def test_sizes_of_visible_runs_that_are_over_are_measured(qtbot, lab, page):
    run = lab.submit("measured", steps=20)
    lab.wait_until_over(run)
    qtbot.waitUntil(lambda: listed(page, run), timeout=WAIT_MS)

    def size():
        return page.model.index(page.model.rows.place[run.run_id], KEYS.index("size")).data()

    qtbot.waitUntil(lambda: size() != "", timeout=WAIT_MS)
    assert size().endswith("B")


def test_ids_are_copied_and_forms_are_opened(qtbot, lab, page, context):
    run = lab.submit("source", steps=20)
    choose_over(qtbot, page, run)

    for key in ("copy_id", "duplicate", "resume", "evaluate", "operators"):
        page.bar.actions_by_key[key].trigger()

    assert QGuiApplication.clipboard().text() == run.run_id
    assert context.go.visits == [
        ("new_run", ("train",), {"run_id": run.run_id}),
        ("new_run", ("resume",), {"run_id": run.run_id}),
        ("new_run", ("evaluate",), {"run_id": run.run_id}),
        ("show_operators", (run.run_id,), {}),
    ]


def test_a_run_that_another_client_deletes_meanwhile_is_named(qtbot, lab, page, context):
    run = lab.submit("deleted elsewhere", steps=20)
    choose_over(qtbot, page, run)

    page.bar.actions_by_key["delete"].trigger()
    qtbot.waitUntil(lambda: page.findChild(QMessageBox) is not None, timeout=WAIT_MS)
    lab.client.delete_run(run.run_id)
    confirm(qtbot, page)
    qtbot.waitUntil(lambda: context.notices.problems != [], timeout=WAIT_MS)

    sentence, details = context.notices.problems[0]
    assert sentence == "1 run could not be deleted."
    assert run.run_id in details


def test_the_selected_run_opens_below_and_its_row_stays_in_sight(qtbot, lab, page):
    runs = [lab.submit(f"below {number}", steps=20) for number in range(3)]
    page.resize(1100, 400)
    choose(qtbot, page, *runs)
    oldest = page.model.run_at(page.model.rowCount() - 1)

    page.table.select([oldest.run_id], oldest.run_id)
    qtbot.waitUntil(lambda: page.panel is not None and page.panel.isVisible(), timeout=WAIT_MS)

    def is_in_sight():
        rect = page.table.visualRect(page.table.currentIndex())
        return page.table.viewport().rect().contains(rect.adjusted(0, 0, -rect.width() + 1, 0))

    qtbot.waitUntil(is_in_sight, timeout=WAIT_MS)
    assert page.panel.run_id == oldest.run_id


def test_the_remembered_order_holds_from_the_start(qtbot, lab, request):
    runs = [lab.wait_until_over(lab.submit(name, steps=20)) for name in ("b", "c", "a")]
    context = request.getfixturevalue("context")  # only now: its hub has listed nothing yet
    context.memory.remember("runs/sort", "name")
    page = RunsPage(context)
    qtbot.addWidget(page)
    page.show()

    qtbot.waitUntil(lambda: all(listed(page, run) for run in runs), timeout=WAIT_MS)

    place = page.model.rows.place
    assert [run.name for run in sorted(runs, key=lambda run: place[run.run_id])] == ["a", "b", "c"]
