"""The Train form with a real daemon: type, see the error, correct it, press Enter, and the run appears."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QLineEdit, QPlainTextEdit, QPushButton

from mosaic.gui.new_run.footer import VALID, WRONG
from mosaic.model.states import RunState


def line(sheet, name):
    found = sheet.findChild(QLineEdit, f"new_run.{name}")
    assert found is not None, name
    return found


def retype(qtbot, control, text):
    control.setFocus()
    control.selectAll()
    qtbot.keyClicks(control, text) if text else qtbot.keyClick(control, Qt.Key.Key_Delete)


def problem_of(sheet, key):
    row = sheet.page.view.rows.get(key) or sheet.page.view.all.row(key)
    return row.problem.text()


def started_run(qtbot, context):
    qtbot.waitUntil(lambda: bool(context.go.visits), timeout=20_000)
    ((place, args, _),) = context.go.visits
    assert (place, args[1]) == ("open_run", "curves")
    return args[0]


def test_type_see_the_error_correct_it_and_start(qtbot, opened, context, lab):
    sheet = opened("train", "toy")
    steps = line(sheet, "train.steps")
    assert steps.text() == "1000"

    retype(qtbot, steps, "many")
    assert problem_of(sheet, "steps") == 'steps: must be an integer, not "many".'
    assert sheet.footer.note.text() == WRONG
    qtbot.keyClick(steps, Qt.Key.Key_Return)
    assert sheet.isVisible()
    assert context.go.visits == []

    retype(qtbot, steps, "30")
    assert problem_of(sheet, "steps") == ""
    qtbot.waitUntil(lambda: sheet.footer.note.text() == VALID, timeout=20_000)
    with qtbot.waitSignal(sheet.closed, timeout=20_000):
        qtbot.keyClick(steps, Qt.Key.Key_Return)

    run = lab.client.get_run(started_run(qtbot, context))
    assert run.config["metadata"]["worker"]["config"]["steps"] == 30
    assert lab.wait_until_over(run).state is RunState.TERMINATED
    assert not sheet.isVisible()


def test_a_sheet_that_is_opened_with_settings_has_them(qtbot, opened):
    retype(qtbot, line(opened("train", "toy"), "train.steps"), "30")

    sheet = opened("train", "toy", settings={"steps": 500, "paint": True})

    qtbot.waitUntil(lambda: line(sheet, "train.steps").text() == "500", timeout=20_000)
    assert "paint=true" in sheet.footer.command.text


def test_the_first_field_has_the_keyboard_and_escape_closes(qtbot, opened):
    sheet = opened("train", "tiny")
    sheet.activateWindow()

    assert sheet.focusWidget() is sheet.findChild(QComboBox, "new_run.train.algo")
    with qtbot.waitSignal(sheet.closed):
        qtbot.keyClick(sheet.focusWidget(), Qt.Key.Key_Escape)


def test_two_clicks_start_one_run(qtbot, opened, context, lab):
    before = {run.run_id for run in lab.client.list_runs().runs}
    sheet = opened("train", "toy")
    retype(qtbot, line(sheet, "train.steps"), "20")

    qtbot.mouseClick(sheet.footer.start, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(sheet.footer.start, Qt.MouseButton.LeftButton)
    sheet.start()

    run_id = started_run(qtbot, context)
    assert {run.run_id for run in lab.client.list_runs().runs} - before == {run_id}


def test_the_same_settings_in_a_sheet_opened_again_are_a_new_run(qtbot, opened, context):
    for _ in range(2):
        sheet = opened("train", "toy")
        retype(qtbot, line(sheet, "train.steps"), "21")
        with qtbot.waitSignal(sheet.closed, timeout=20_000):
            sheet.start()

    first, second = (args[0] for _, args, _ in context.go.visits)
    assert first != second


def test_a_name_with_markup_is_a_name(qtbot, opened, context, lab):
    sheet = opened("train", "toy")
    retype(qtbot, line(sheet, "train.steps"), "20")
    retype(qtbot, line(sheet, "train.name"), "<b>x</b> & y")
    retype(qtbot, line(sheet, "train.tags"), "a, <i>b</i>")
    assert "'<b>x</b> & y'" in sheet.footer.command.text

    sheet.start()

    run = lab.client.get_run(started_run(qtbot, context))
    assert (run.name, run.tags) == ("<b>x</b> & y", ("a", "<i>b</i>"))


def test_a_refusal_of_the_daemon_stands_beside_its_field_and_nothing_is_lost(qtbot, opened, context):
    sheet = opened("train", "toy")
    retype(qtbot, line(sheet, "train.steps"), "33")
    retype(qtbot, line(sheet, "train.name"), "x" * 130)

    sheet.start()

    name = sheet.page.options.rows["name"].problem
    qtbot.waitUntil(lambda: name.text() == "must have 1 to 120 printable characters.", timeout=20_000)
    assert sheet.isVisible()
    assert line(sheet, "train.steps").text() == "33"
    assert sheet.footer.start.isEnabled()
    assert context.go.visits == []


def test_another_algorithm_has_other_settings(qtbot, opened):
    sheet = opened("train", "tiny")
    view = sheet.page.view
    view.all.set_open(True)
    assert view.all.row("rate") is not None

    box = sheet.findChild(QComboBox, "new_run.train.algo")
    box.setCurrentText("slow")
    box.activated.emit(box.currentIndex())

    assert view.all.row("rate") is None
    assert view.all.row("patience").help.text() == "How long to wait."
    assert sheet.findChild(QComboBox, "new_run.train.algo") is box  # the keyboard stays where it is


def test_a_search_shows_what_matches(qtbot, opened):
    sheet = opened("train", "toy")
    everything = sheet.page.view.all
    everything.set_open(True)

    qtbot.keyClicks(everything.search, "checkpoint")

    def shown():
        return {key for key, row in everything._rows.items() if row.isVisible()}

    qtbot.waitUntil(lambda: {"checkpoint", "checkpoint_every"} <= shown())
    assert "rate" not in shown()
    retype(qtbot, everything.search, "no such thing")
    assert sheet.findChild(type(sheet.title), "new_run.train.all.nothing").isVisible()


def test_a_changed_setting_is_marked_and_can_be_reset(qtbot, opened):
    sheet = opened("train", "toy")
    row = sheet.page.view.all.row("rate")
    retype(qtbot, row.editor.line, "5")
    assert row.back.isVisible()
    assert "1 changed" in sheet.page.view.all.header.text()
    assert "rate=5" in sheet.footer.command.text

    row.back.click()

    assert row.editor.text() == "0.0"
    assert sheet.footer.command.text == "mosaic run toy"


def test_the_gpu_switch_requests_a_gpu_and_says_that_there_is_none(qtbot, opened):
    sheet = opened("train", "tiny")
    options = sheet.page.options

    options.rows["gpu"].editor.box.click()

    assert "cuda=true --gpus 1" in sheet.footer.command.text
    request = sheet.page.request()
    assert request.options.gpus == 1
    options.rows["waits"].editor.box.click()
    assert sheet.page.request().options.gpus_mandatory


def test_what_is_required_is_asked_for(qtbot, opened):
    sheet = opened("train", "tiny")
    assert problem_of(sheet, "env_id") == "env_id: missing. The worker requires it."

    box = sheet.findChild(QComboBox, "new_run.train.env_id")
    assert [box.itemText(index) for index in range(box.count())] == ["Corridor-v0", "Maze-v0"]
    retype(qtbot, box.lineEdit(), "Corridor-v0")

    qtbot.waitUntil(lambda: sheet.footer.note.text() == VALID, timeout=20_000)


def test_the_line_is_copied(qtbot, opened):
    sheet = opened("train", "toy")
    retype(qtbot, line(sheet, "train.seed"), "7")

    sheet.findChild(QPushButton, "new_run.copy").click()

    assert QGuiApplication.clipboard().text() == "mosaic run toy seed=7"


def test_what_was_typed_is_there_again(qtbot, opened):
    sheet = opened("train", "toy")
    retype(qtbot, line(sheet, "train.seed"), "7")
    sheet.close_sheet()

    sheet = opened("train", "toy")
    assert line(sheet, "train.seed").text() == "7"
    sheet.findChild(QPushButton, "new_run.train.defaults").click()
    assert line(sheet, "train.seed").text() == "0"


@pytest.mark.parametrize(
    ("worker", "words"),
    [
        ("broken", "its schema cannot be used: a is not described by an object"),
        ("silent", "its library is missing"),
    ],
)
def test_without_a_schema_the_settings_are_lines(qtbot, opened, worker, words):
    sheet = opened("train", worker)
    assert words in sheet.page.note.text()

    other = sheet.findChild(QPlainTextEdit, "new_run.train.other")
    other.setPlainText("steps=5\nnonsense")
    assert "'nonsense' is not of the form key=value" in sheet.page.view.other_problem.text()
    other.setPlainText("steps=5\nextras.lr=1e-3")

    assert sheet.footer.command.text == f"mosaic run {worker} steps=5 extras.lr=0.001"
    assert not sheet.modes.buttons["resume"].isEnabled()
    assert "does not say how its runs are resumed" in sheet.modes.buttons["resume"].toolTip()


def test_a_worker_that_is_not_installed_can_be_installed(qtbot, sheet, context):
    sheet.open("train", "cleanrl")
    qtbot.waitUntil(sheet.missing.isVisible, timeout=20_000)
    assert sheet.missing.title.text() == "cleanrl is not installed"
    assert not sheet.footer.start.isEnabled()

    sheet.missing.button.click()

    assert context.go.visits == [("show_workers", ("cleanrl",), {})]


def test_a_run_is_copied_with_everything_it_was_given(qtbot, opened, lab):
    run = lab.submit("first", limits={"time_s": 5400}, steps=20, rate=1000, seed=4)

    sheet = opened("train", "", run.run_id)

    qtbot.waitUntil(lambda: "rate=1000" in sheet.footer.command.text, timeout=20_000)
    assert sheet.footer.command.text == "mosaic run toy seed=4 steps=20 rate=1000 --name first --time-limit 1h30m"
    lab.wait_until_over(run)
