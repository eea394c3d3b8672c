"""Script, Resume and Evaluate, end to end with the toy worker."""

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit

from mosaic.gui.context import Context
from mosaic.gui.new_run.sheet import NewRunSheet
from mosaic.model.states import RunState


@pytest.fixture(scope="module")
def trained(lab):
    """It crashed at step 450 of 600, with checkpoints at each hundred and a best one."""
    keys = {"steps": 600, "seed": 3, "checkpoint_every": 100, "eval_every": 200, "crash_at": 450}
    return lab.wait_until_over(lab.submit("crawler", **keys))


def start(qtbot, sheet, context, lab):
    sheet.start()
    qtbot.waitUntil(lambda: bool(context.go.visits), timeout=20_000)
    return lab.wait_until_over(lab.client.get_run(context.go.visits[-1][1][0]))


def choices(sheet, name):
    box = sheet.findChild(QComboBox, f"new_run.{name}")
    return [box.itemText(index) for index in range(box.count())]


def test_a_run_is_resumed_from_a_checkpoint(qtbot, opened, context, lab, trained):
    sheet = opened("resume", "", trained.run_id)
    qtbot.waitUntil(lambda: len(choices(sheet, "resume.checkpoint")) == 6, timeout=20_000)
    assert choices(sheet, "resume.run")[0].startswith("crawler · step 400")
    qtbot.waitUntil(lambda: sheet.page.view.form.text("steps") == "600", timeout=20_000)
    sheet.page.view._take("crash_at", "null")
    sheet.page.view._take("steps", "700")
    assert sheet.footer.command.text == f"mosaic resume {trained.run_id} steps=700 crash_at=null"

    run = start(qtbot, sheet, context, lab)

    assert run.state is RunState.TERMINATED
    assert (run.parent_run_id, run.relation, run.total_steps) == (trained.run_id, "resume", 700)


def test_a_finished_run_is_offered_more_steps(qtbot, opened, lab):
    done = lab.wait_until_over(lab.submit("done", steps=40, checkpoint_every=20))

    sheet = opened("resume", "", done.run_id)

    qtbot.waitUntil(lambda: "steps=80" in sheet.footer.command.text, timeout=20_000)


def test_a_policy_is_evaluated(qtbot, opened, context, lab, trained):
    sheet = opened("evaluate", "", trained.run_id)
    qtbot.waitUntil(lambda: len(choices(sheet, "evaluate.checkpoint")) == 6, timeout=20_000)
    box = sheet.findChild(QComboBox, "new_run.evaluate.checkpoint")
    assert box.itemText(1).startswith("The best (step")
    box.setCurrentIndex(1)
    box.activated.emit(1)
    episodes = sheet.findChild(QLineEdit, "new_run.evaluate.episodes")
    qtbot.keyClicks(episodes, "none")
    assert sheet.page.episodes.problem.text() == "episodes: must be an integer of at least 1, not 'none'."
    episodes.selectAll()
    qtbot.keyClicks(episodes, "3")
    assert sheet.footer.command.text == f"mosaic eval {trained.run_id} --best --episodes 3"
    assert not sheet.page.video.isVisible()  # the toy worker records none

    run = start(qtbot, sheet, context, lab)

    assert (run.state, run.relation, run.area) == (RunState.TERMINATED, "eval", "evals")
    assert run.summary.eval_episodes == 3 or run.summary.episodes == 3


def test_a_checkpoint_of_ones_own_is_used(qtbot, opened, trained, tmp_path):
    sheet = opened("evaluate", "", trained.run_id)
    qtbot.waitUntil(lambda: len(choices(sheet, "evaluate.checkpoint")) == 6, timeout=20_000)

    sheet.page.choice.choose_file(str(tmp_path / "my policy.json"))

    assert f"--checkpoint '{tmp_path}/my policy.json'" in sheet.footer.command.text


def test_a_refusal_that_belongs_to_no_field_stands_on_top(qtbot, opened, context, lab):
    bare = lab.wait_until_over(lab.submit("bare", steps=10))
    sheet = opened("resume", "", bare.run_id)
    qtbot.waitUntil(lambda: sheet.page.choice.run_id == bare.run_id, timeout=20_000)

    sheet.start()

    qtbot.waitUntil(lambda: "has saved no checkpoint" in sheet.problem.sentence.text(), timeout=20_000)
    assert context.go.visits == []


def test_a_script_is_run_with_its_header_shown(qtbot, opened, context, lab, tmp_path):
    script = tmp_path / "two phases.sh"
    script.write_text('#!/bin/sh\n# @description: Says it twice.\n# @phases: 2\n# @total_timesteps: 50\necho "$1 $1"\n')
    sheet = opened("script", "toy")
    assert sheet.footer.note.text() == "Choose a script."

    sheet.page.file.editor.choose(str(script))
    qtbot.waitUntil(lambda: sheet.page.about.text() == "Says it twice. 2 phases, 50 steps.", timeout=20_000)
    qtbot.keyClicks(sheet.page.arguments.editor.line, "'a b' --x")
    assert sheet.footer.command.text == f"mosaic run --script '{script}' --env-of toy -- 'a b' --x"
    run = start(qtbot, sheet, context, lab)

    assert (run.state, run.area, run.total_steps) == (RunState.TERMINATED, "custom_scripts", 50)
    assert "a b a b" in (Path(run.run_dir) / "logs" / "worker.stdout.log").read_text()


def test_a_script_that_is_not_there_is_refused_in_place(qtbot, opened, context, tmp_path):
    sheet = opened("script", "toy")

    sheet.page.file.editor.choose(str(tmp_path / "gone.sh"))

    qtbot.waitUntil(lambda: "cannot be read: No such file" in sheet.page.file.problem.text(), timeout=20_000)
    sheet.start()
    assert context.go.visits == []


@pytest.mark.parametrize("mode", ["train", "script", "resume", "evaluate"])
def test_every_part_of_a_form_is_in_the_sheet(qtbot, opened, mode):
    sheet = opened(mode, "toy")

    assert [window for window in QApplication.topLevelWidgets() if window.isVisible()] == [sheet]


def test_a_run_that_is_gone_is_named(qtbot, sheet):
    sheet.open("resume", "", "01JCQZ7Q5V8R2M3N4P5Q6R7S8T")

    qtbot.waitUntil(lambda: "There is no run '01JCQZ7Q5V8R2M3N4P5Q6R7S8T'" in sheet.problem.sentence.text())
    assert not sheet.footer.start.isEnabled()


def test_a_mode_that_a_worker_does_not_offer_says_why(qtbot, opened):
    sheet = opened("train", "tiny")

    assert not sheet.modes.buttons["evaluate"].isEnabled()
    assert "its schema has no x-mosaic-eval" in sheet.modes.buttons["evaluate"].toolTip()
    assert sheet.modes.buttons["script"].isEnabled()


def test_the_workers_of_another_machine_take_lines_of_settings(qtbot, context, lab):
    elsewhere = Context(context.hub, context.memory, context.theme, None, "me@box", context.go, context.notices)
    sheet = NewRunSheet(elsewhere)
    qtbot.addWidget(sheet)
    sheet.open("train", "toy")
    qtbot.waitUntil(sheet.page.isVisible)
    assert "cannot be listed from here" in sheet.page.note.text()
    assert not sheet.modes.buttons["script"].isEnabled()

    sheet.page.view.other.setPlainText("steps=12")

    assert sheet.footer.command.text == "mosaic --host me@box run toy steps=12"
    assert start(qtbot, sheet, context, lab).total_steps == 12
