"""The page: composing, scripts from files, results, and the ways between them."""

import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton

WAIT = 40_000


def click(page, name):
    QTest.mouseClick(page.findChild(QPushButton, name), Qt.MouseButton.LeftButton)


def read_file(page, path):
    click(page, "operators.new_script")
    field = page.findChild(QComboBox, "operators.path")
    field.setFocus()
    field.lineEdit().setText(str(path))
    QTest.keyClick(field.lineEdit(), Qt.Key.Key_Return)


def test_the_empty_page_teaches_and_fills_the_composer(qtbot, page):
    assert page.empty.button.isVisible()

    page.empty.button.click()

    assert page.shown is page.composer
    assert [row.draft.kind for row in page.composer.rows] == ["random", "human"]


def test_without_the_eval_worker_it_leads_to_it(qtbot, context, lab):
    from mosaic.gui.operators.page import OperatorsPage

    eval_env = lab.root.path / "envs" / "eval"
    eval_env.rename(lab.root.path / "away")
    page = OperatorsPage(context)
    qtbot.addWidget(page)
    page.show()
    try:
        qtbot.waitUntil(lambda: page.shown is page.missing, timeout=WAIT)
        page.missing.button.click()
    finally:
        (lab.root.path / "away").rename(eval_env)

    assert context.go.visits == [("show_workers", ("eval",), {})]


def test_composed_it_opens_lanes(qtbot, page):
    click(page, "operators.new")
    page.composer.env.setCurrentText("Corridor")
    click(page, "operators.add.human")
    page.composer.check()

    click(page, "operators.submit")

    qtbot.waitUntil(lambda: page.evaluation is not None and len(page.evaluation.grid.cards) == 2, timeout=WAIT)
    assert page.evaluation.question.isVisible()
    qtbot.waitUntil(lambda: page.list.list.count() > 0 and page.list.list.currentRow() >= 0, timeout=WAIT)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda composer: composer.seeds.setText("5-1"), "seeds"),
        (lambda composer: composer.max_steps.setText("many"), "max_steps: must be an integer"),
        (lambda composer: composer.add("rl"), "choose a trained run"),
        (lambda composer: composer.add("llm"), "operators.model.model is missing"),
        (lambda composer: composer.rows[0].name.setText("a b"), "a b"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_submitted(page, change, words):
    page.composer.env.setCurrentText("Corridor")

    change(page.composer)

    assert words in page.composer.check()
    shown = [one.text() for one in page.composer.findChildren(QLabel) if one.property("kind") == "problem"]
    assert any(words in text for text in shown)
    assert not page.findChild(QPushButton, "operators.submit").isEnabled()


def test_the_daemons_refusal_stands_at_its_operator(qtbot, page):
    click(page, "operators.new")
    composer = page.composer
    composer.env.setCurrentText("Corridor")
    composer.add("worker")
    composer.rows[-1].worker.setText("nobody")
    composer.check()

    click(page, "operators.submit")

    qtbot.waitUntil(lambda: composer.rows[-1]._wrong.isVisible(), timeout=WAIT)
    assert "nobody" in composer.rows[-1]._wrong.text()


def test_a_trained_run_is_put_beside_a_random_player(qtbot, page, lab, context):
    run = lab.wait_until_over(lab.submit(name="walker", steps=5))
    qtbot.waitUntil(lambda: run.run_id in context.hub.runs, timeout=WAIT)

    page.show_run(run.run_id)

    assert [one.kind for one in page.composer.draft.operators] == ["rl", "random"]
    assert page.composer.draft.operators[0].run == run.run_id
    click(page, "operators.add.human")
    assert page.composer.draft.operators[-1].kind == "human"


def test_a_script_file_is_summarised_played_and_compared(qtbot, page, tmp_path, lab):
    path = tmp_path / "duel.json"
    operators = {"chance": "random", "straight": "passive"}
    path.write_text(json.dumps({"env": "Corridor", "operators": operators, "seeds": "0-9", "pace": 200}))
    read_file(page, path)
    start = page.findChild(QPushButton, "operators.start")
    qtbot.waitUntil(start.isEnabled, timeout=WAIT)
    words = [one.text() for one in page.script.findChildren(QLabel)]
    assert "20, 10 episodes in each of 2 lanes" in words

    click(page, "operators.start")

    qtbot.waitUntil(lambda: page.evaluation is not None and bool(page.evaluation.results.tables), timeout=WAIT)
    results = page.evaluation.results
    operators, pairs = results.tables
    assert [operators.item(row, 0).text() for row in range(2)] == ["chance", "straight"]
    assert operators.item(1, 1).text() == "10"
    assert pairs.item(0, 0).text() == "chance – straight"
    click(page, "operators.copy")
    assert QGuiApplication.clipboard().text().startswith("Operator\tEpisodes\t")
    run_id = page.evaluation.session.run_id
    click(page, "operators.new")
    page.show_run(run_id)
    assert page.shown is page.evaluation


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.yaml", "env: Corridor\noperators: {a: randm}\n", "operators.a: must be random"),
        ("a.json", '{"env": ', "line 1"),
        ("a.yaml", "envv: 1\n", "envv"),
        ("a.py", "raise SystemExit('no document today')", "exited with 1"),
        ("a.txt", "env: Corridor", "is not an evaluation script"),
        ("missing.yaml", None, "No such file or directory"),
    ],
)
def test_a_bad_file_is_refused_in_words(qtbot, page, tmp_path, name, text, words):
    if text is not None:
        (tmp_path / name).write_text(text)

    read_file(page, tmp_path / name)

    qtbot.waitUntil(page.script._problem.isVisible, timeout=WAIT)
    assert words in page.script._problem.sentence.text()
    assert not page.findChild(QPushButton, "operators.start").isEnabled()


def test_recent_files_are_remembered(qtbot, page, context, tmp_path):
    from mosaic.gui.operators.script_sheet import ScriptSheet

    path = tmp_path / "a.yaml"
    path.write_text("env: Corridor\noperators: {a: random}\n")
    read_file(page, path)
    qtbot.waitUntil(page.findChild(QPushButton, "operators.start").isEnabled, timeout=WAIT)

    again = ScriptSheet(context)
    qtbot.addWidget(again)

    assert again.path.itemText(0) == str(path)


def test_an_unknown_run_is_a_problem_in_words(qtbot, page, context):
    page.show_run("01JCQ0000000000000000000ZZ")

    qtbot.waitUntil(lambda: bool(context.notices.problems), timeout=WAIT)
