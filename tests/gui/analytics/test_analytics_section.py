"""The analytics section, with a real daemon and real files."""

import json
import os
import sys

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QPushButton

from mosaic.gui.analytics import boards
from mosaic.gui.analytics.boards import Boards
from mosaic.gui.analytics.section import AnalyticsSection

LONG = 60_000

# A TensorBoard in a few lines: it answers at its port, or fails with words.
BOARD = """\
import sys
from http.server import HTTPServer, BaseHTTPRequestHandler
if {fails}:
    sys.exit("No module named rust")
HTTPServer(("localhost", int(sys.argv[sys.argv.index("--port") + 1])), BaseHTTPRequestHandler).serve_forever()
"""


@pytest.fixture
def opened(monkeypatch):
    """The addresses that were given to the desktop."""
    found = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: found.append(url) or True)
    return found


@pytest.fixture
def run(qtbot, hub, lab):
    made = lab.submit("analysed", steps=5)
    lab.wait_until_over(made)
    qtbot.waitUntil(lambda: made.run_id in hub.runs and hub.runs[made.run_id].state.is_over, timeout=LONG)
    return made


@pytest.fixture
def folder(lab, run):
    path = lab.rundir(run).path
    (path / "videos").mkdir(exist_ok=True)
    return path


@pytest.fixture
def show(qtbot, context, run):
    def make():
        section = AnalyticsSection(context, run.run_id)
        qtbot.addWidget(section)
        section.resize(900, 600)
        section.show()
        qtbot.waitUntil(lambda: section._reading is None, timeout=LONG)
        return section

    return make


@pytest.fixture
def install_board(lab):
    def install(fails=False):
        site = lab.root.envs / "cleanrl" / "lib/python3.11/site-packages/tensorboard"
        site.mkdir(parents=True)
        (site / "__init__.py").touch()
        (site / "main.py").write_text(BOARD.format(fails=fails))
        python = lab.root.envs / "cleanrl" / "bin/python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nPYTHONPATH={site.parent} exec {sys.executable} "$@"\n')
        python.chmod(0o700)

    return install


def test_a_run_without_results_says_what_to_do(show):
    section = show()

    assert section.pages.currentIndex() == 0
    assert "run it again" in section.nothing.text.text()


def test_videos_and_reports_are_listed_and_opened(qtbot, show, folder, opened):
    (folder / "videos" / "best.mp4").write_bytes(b"x" * 2000)
    (folder / "report.html").write_text("<p>")
    section = show()
    qtbot.waitUntil(lambda: section.pages.currentIndex() == 1, timeout=LONG)

    section.videos.findChild(QPushButton, "analytics.videos.open.0").click()
    section.reports.findChild(QPushButton, "analytics.reports.open.0").click()

    assert opened == [
        QUrl.fromLocalFile(str(folder / "videos/best.mp4")),
        QUrl.fromLocalFile(str(folder / "report.html")),
    ]


def test_a_file_that_is_gone_or_has_become_a_link_is_not_opened(qtbot, show, folder, opened, context):
    video = folder / "videos" / "best.mp4"
    video.write_bytes(b"x")
    section = show()
    qtbot.waitUntil(lambda: section.pages.currentIndex() == 1, timeout=LONG)

    video.unlink()
    os.symlink("/etc/passwd", video)
    section.videos.findChild(QPushButton, "analytics.videos.open.0").click()

    assert opened == []
    assert context.notices.problems[0][0] == "best.mp4 is no longer there."


def test_an_animation_plays_in_place_and_stops(qtbot, show, folder):
    _write_gif(folder / "videos" / "lane.gif")
    section = show()
    qtbot.waitUntil(lambda: section.pages.currentIndex() == 1, timeout=LONG)
    play = section.videos.findChild(QPushButton, "analytics.videos.play.0")

    play.click()
    assert section.videos.player.isVisible()
    assert not section.videos.player.pixmap().isNull() or section.videos.player.movie() is not None

    play.click()
    assert not section.videos.player.isVisible()


def test_a_damaged_animation_is_named(qtbot, show, folder):
    (folder / "videos" / "lane.gif").write_bytes(b"not a gif")
    section = show()
    qtbot.waitUntil(lambda: section.pages.currentIndex() == 1, timeout=LONG)

    section.videos.findChild(QPushButton, "analytics.videos.play.0").click()

    assert "not an animation" in section.videos.player.text()


def test_wandb_has_a_link_or_a_command(qtbot, show, folder, opened):
    (folder / "wandb" / "offline-run-1").mkdir(parents=True)
    wandb = {"project": "<b>x</b>", "url": "https://wandb.ai/me/x/runs/1", "directory": "wandb"}
    (folder / "analytics.json").write_text(json.dumps({"version": 1, "artifacts": {"wandb": wandb}}))
    section = show()
    qtbot.waitUntil(lambda: section.pages.currentIndex() == 1, timeout=LONG)

    section.wandb.open_button.click()

    assert opened == [QUrl("https://wandb.ai/me/x/runs/1")]
    assert section.wandb.command.text.startswith("wandb sync /")
    assert "<b>x</b>" in section.wandb.words.text()


def test_tensorboard_is_started_once_and_opened(qtbot, show, folder, opened, hub, install_board):
    install_board()
    (folder / "tensorboard").mkdir(exist_ok=True)
    (folder / "tensorboard" / "events").write_bytes(b"x")
    section = show()
    qtbot.waitUntil(lambda: section.board.isVisibleTo(section), timeout=LONG)

    section.board_button.click()
    assert not section.board_button.isEnabled()
    qtbot.waitUntil(lambda: len(opened) == 1, timeout=LONG)
    section.board_button.click()
    qtbot.waitUntil(lambda: len(opened) == 2, timeout=LONG)

    started = Boards.of(hub)._running.values()
    assert [url for _, url in started] == [section.board_address.text]
    assert opened[0] == opened[1] == QUrl(section.board_address.text)
    ((process, _),) = started
    Boards.of(hub).stop()
    assert process.wait(20) != 0


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_tensorboard_that_fails_says_why(qtbot, show, folder, install_board, monkeypatch, is_installed):
    if is_installed:
        install_board(fails=True)
    else:
        monkeypatch.setattr(boards.Board, "of", _not_installed)
    (folder / "tensorboard").mkdir(exist_ok=True)
    (folder / "tensorboard" / "events").write_bytes(b"x")
    section = show()
    qtbot.waitUntil(lambda: section.board.isVisibleTo(section), timeout=LONG)

    section.board_button.click()
    qtbot.waitUntil(lambda: section.problem.isVisible(), timeout=LONG)

    expected = "exit code 1" if is_installed else "is not installed"
    assert expected in section.problem.sentence.text()
    assert section.board_button.isEnabled()


def _not_installed(*_):
    from mosaic.model.errors import MosaicError

    raise MosaicError("TensorBoard is not installed.")


def _write_gif(path):
    """Two frames of one pixel, as the format's description spells them."""
    head = b"GIF89a\x02\x00\x02\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff"
    frame = b"\x21\xf9\x04\x00\x0a\x00\x00\x00\x2c\x00\x00\x00\x00\x02\x00\x02\x00\x00\x02\x02\x44\x0a\x00"
    path.write_bytes(head + frame + frame + b"\x3b")
