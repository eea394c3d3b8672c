"""Workers are installed, tested, repaired and removed with the real uv."""

import dataclasses
import json
import shutil

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QPushButton
from tiny_worker import write_tiny_worker

from mosaic.gui.workers.page import WorkersPage

WAIT_MS = 60000


@pytest.fixture
def page(qtbot, context):
    page = WorkersPage(context)
    qtbot.addWidget(page)
    page.resize(1280, 720)
    page.show()
    qtbot.waitUntil(lambda: page.table.rowCount() > 0, timeout=WAIT_MS)
    return page


def row_of(page, name):
    return next((row for row in page.table.rows if row.name == name), None)


def press(qtbot, page, name):
    qtbot.mouseClick(page.findChild(QPushButton, name), Qt.MouseButton.LeftButton)


def install(qtbot, page, folder, name="tiny"):
    page.install_folder(str(folder))
    qtbot.waitUntil(lambda: (row := row_of(page, name)) is not None and row.can_run, timeout=WAIT_MS)


def test_workers_that_come_with_mosaic_are_listed(page):
    assert row_of(page, "toy").status == "installed"
    assert row_of(page, "cleanrl").status == "available"
    page.show_worker("cleanrl")
    assert page.details.install.isVisible()
    assert page.details.torch.isVisible()
    assert not page.details.run.isVisible()


def test_a_worker_is_installed_from_its_folder_and_removed(qtbot, page, context, tmp_path):
    folder = write_tiny_worker(tmp_path)
    phases = []
    page.install_folder(str(folder))
    page._tasks["tiny_worker"].progressed.connect(lambda: phases.append(page.details.card.phase.text()))
    assert page.table.item(page.table.currentRow(), 1).text() == "▶ installing"
    qtbot.waitUntil(lambda: row_of(page, "tiny") is not None, timeout=WAIT_MS)

    assert row_of(page, "tiny").status == "installed"
    assert row_of(page, "tiny_worker") is None
    assert phases
    assert context.notices.said == ["tiny_worker is installed."]

    page.show_worker("tiny")
    press(qtbot, page, "workers.remove")
    box = page.findChild(QMessageBox)
    assert "This frees" in box.text()
    qtbot.mouseClick(box.findChild(QPushButton, "confirm.yes"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: row_of(page, "tiny") is None, timeout=WAIT_MS)
    assert not (context.root.envs / "tiny").exists()


def test_a_run_is_started_with_the_worker(qtbot, page, context):
    page.show_worker("toy")

    press(qtbot, page, "workers.run")

    assert context.go.visits == [("new_run", ("train",), {"worker": "toy"})]


def test_a_broken_worker_says_why_and_is_repaired(qtbot, page, context, tmp_path):
    install(qtbot, page, write_tiny_worker(tmp_path))
    shutil.rmtree(next((context.root.envs / "tiny" / "lib").glob("python3*/site-packages")))
    page.refresh()
    qtbot.waitUntil(lambda: row_of(page, "tiny").status == "broken", timeout=WAIT_MS)

    page.show_worker("tiny")
    assert page.details.problem.sentence.text() == "tiny cannot run: its packages are missing."
    assert page.details.install.text() == "Repair"
    press(qtbot, page, "workers.install")

    qtbot.waitUntil(lambda: row_of(page, "tiny").status == "installed", timeout=WAIT_MS)


def test_an_install_that_fails_says_why(qtbot, page, context, tmp_path):
    page.install_folder(str(write_tiny_worker(tmp_path, name="needy", needs=["mosaic-sdk==99"])))

    qtbot.waitUntil(lambda: bool(context.notices.problems), timeout=WAIT_MS)

    assert "its requirements cannot be met together" in context.notices.problems[0][0]
    assert "its requirements cannot be met together" in page.details.card.problem.sentence.text()


def test_an_install_can_be_cancelled(qtbot, page, context, tmp_path):
    folder = write_tiny_worker(tmp_path, name="slow", init="import time\ntime.sleep(600)\n")
    page.install_folder(str(folder))
    task = page._tasks["slow_worker"]
    qtbot.waitUntil(lambda: "Asking the worker" in task.phase, timeout=WAIT_MS)

    press(qtbot, page, "workers.cancel")

    qtbot.waitUntil(lambda: not task.is_running, timeout=WAIT_MS)
    assert "Cancelled" in page.details.card.title.text()
    assert not context.notices.problems
    qtbot.waitUntil(lambda: not list(context.root.envs.glob(".new-*")), timeout=WAIT_MS)


def test_two_installs_at_once_both_succeed(qtbot, page, tmp_path):
    page.install_folder(str(write_tiny_worker(tmp_path, name="one")))
    page.install_folder(str(write_tiny_worker(tmp_path, name="two")))

    qtbot.waitUntil(lambda: bool(row_of(page, "one") and row_of(page, "two")), timeout=WAIT_MS)


def test_names_and_descriptions_are_shown_as_text(qtbot, page, tmp_path):
    about = {"name": "x", "description": "<b>bold</b>\x1b[31m red"}
    init = f"def get_worker_metadata():\n    return {json.dumps(about)}, {{}}\n"
    install(qtbot, page, write_tiny_worker(tmp_path, name="bold", init=init), "bold")

    page.show_worker("bold")

    assert page.details.about.text() == "<b>bold</b> red"
    assert page.details.about.textFormat() is Qt.TextFormat.PlainText


def test_workers_of_another_machine_are_managed_there(qtbot, context):
    page = WorkersPage(dataclasses.replace(context, root=None, host="user@box"))
    qtbot.addWidget(page)
    page.show()

    assert page._stack.currentWidget().title.text() == "The workers of user@box"
    assert "managed there: ssh user@box mosaic worker list" in page._stack.currentWidget().text.text()
