"""The controls of the frames of a real run."""

import os

import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QToolButton

from mosaic.gui.frames.full_screen import FullScreenFrame
from mosaic.gui.frames.tab import FramesTab
from mosaic.present import frame_recorder

WAIT_MS = 30000


@pytest.fixture
def tab(qtbot, context, painting):
    tab = FramesTab(context, painting.run_id)
    qtbot.addWidget(tab)
    tab.resize(900, 600)
    tab.show()
    qtbot.waitUntil(lambda: tab.view.picture is not None and painting.run_id in context.hub.runs, timeout=WAIT_MS)
    return tab


def save_as(qtbot, tab, path):
    qtbot.waitUntil(lambda: tab.findChild(QFileDialog) is not None, timeout=WAIT_MS)
    dialog = tab.findChild(QFileDialog)
    suggested = dialog.selectedFiles()[0]
    dialog.fileSelected.emit(str(path))
    dialog.close()
    return suggested


def test_the_frame_its_metrics_and_what_it_costs_are_shown(qtbot, tab):
    qtbot.waitUntil(lambda: "fps · watching costs" in tab.caption.text(), timeout=WAIT_MS)

    assert tab.view.overlay.startswith("reward ")
    assert "steps/s" in tab.view.overlay
    assert "320×240" in tab.caption.text()


def test_space_pauses_and_continues(qtbot, tab):
    tab.view.setFocus()
    qtbot.keyClick(tab.view, Qt.Key.Key_Space)

    assert tab.view.note == "Paused"
    assert not tab.source.is_watching
    qtbot.waitUntil(lambda: "renders nothing" in tab.caption.text(), timeout=WAIT_MS)

    qtbot.keyClick(tab.view, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: tab.source.is_watching, timeout=WAIT_MS)
    assert tab.view.note == ""


def test_the_overlay_is_switched_and_remembered(qtbot, tab, context):
    tab.bar.metrics.trigger()

    assert tab.view.overlay == ""
    assert context.memory.value("frames/overlay", True) is False


def test_a_picture_is_saved_and_its_folder_remembered(qtbot, tab, context, tmp_path):
    tab.bar.save.trigger()
    suggested = save_as(qtbot, tab, tmp_path / "now.png")

    qtbot.waitUntil(lambda: bool(context.notices.said), timeout=WAIT_MS)
    assert os.path.basename(suggested).startswith("painting-")
    assert Image.open(tmp_path / "now.png").size == (320, 240)
    assert context.memory.value("frames/folder", "") == str(tmp_path)


def test_a_picture_that_cannot_be_written_is_explained(qtbot, tab, context, tmp_path):
    tab.bar.save.trigger()
    save_as(qtbot, tab, tmp_path / "missing" / "now.png")

    qtbot.waitUntil(lambda: bool(context.notices.problems), timeout=WAIT_MS)
    assert context.notices.problems[0][0].startswith("Cannot write ")
    assert "No such file" in context.notices.problems[0][0]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_disk_is_explained(qtbot, tab, context, tmp_path, monkeypatch):
    def full(path, pixels):
        from mosaic.present.frame_files import _write_whole

        _write_whole(path, lambda file: (_ for _ in ()).throw(OSError(28, "No space left on device")))

    monkeypatch.setattr("mosaic.gui.frames.tab.save_png", full)
    tab.bar.save.trigger()
    save_as(qtbot, tab, tmp_path / "now.png")

    qtbot.waitUntil(lambda: bool(context.notices.problems), timeout=WAIT_MS)
    assert context.notices.problems[0][0] == f"Cannot write {tmp_path / 'now.png'}: No space left on device."
    assert list(tmp_path.glob("now*")) == []


def test_a_clip_is_recorded(qtbot, tab, context, tmp_path, monkeypatch):
    monkeypatch.setattr(frame_recorder.ClipRecorder.__init__, "__defaults__", (0.5,))
    tab.bar.record.trigger()
    assert tab.caption.text().startswith("Recording: ")

    save_as(qtbot, tab, tmp_path / "run.gif")

    qtbot.waitUntil(lambda: bool(context.notices.said), timeout=WAIT_MS)
    assert Image.open(tmp_path / "run.gif").n_frames > 1
    assert tab.bar.record.text() == "Record clip"


def test_a_hidden_tab_ends_its_recording(qtbot, tab):
    tab.bar.record.trigger()
    recorder = tab._recorder

    tab.hide()

    assert tab._recorder is None
    assert recorder._is_ended


def test_the_frame_fills_the_screen_and_comes_back(qtbot, tab):
    tab.bar.full_screen.trigger()
    screen = tab.findChild(FullScreenFrame)
    qtbot.waitUntil(lambda: screen.view.picture is not None, timeout=WAIT_MS)

    qtbot.keyClick(screen, Qt.Key.Key_Escape)

    assert not tab.bar.full_screen.isChecked()
    qtbot.waitUntil(lambda: tab.findChild(FullScreenFrame) is None, timeout=WAIT_MS)


def test_a_narrow_tab_moves_its_actions_into_a_menu(qtbot, tab):
    tab.resize(300, 300)

    qtbot.waitUntil(lambda: tab.findChild(QToolButton, "frames.more").isVisible(), timeout=WAIT_MS)
    assert not tab.findChild(QToolButton, "frames.save.button").isVisible()

    tab.resize(900, 600)
    qtbot.waitUntil(lambda: tab.findChild(QToolButton, "frames.save.button").isVisible(), timeout=WAIT_MS)


def test_the_last_frame_of_a_run_stays(qtbot, context, lab):
    run = lab.submit("ends", steps=1_000_000, rate=200, paint=True)
    tab = FramesTab(context, run.run_id)
    qtbot.addWidget(tab)
    tab.show()
    qtbot.waitUntil(lambda: tab.view.picture is not None, timeout=WAIT_MS)

    lab.client.cancel_run(run.run_id)

    qtbot.waitUntil(lambda: tab.view.note == "Ended", timeout=WAIT_MS)
    assert tab.view.picture is not None
    assert tab.bar.save.isEnabled()
    assert not tab.bar.record.isEnabled()
