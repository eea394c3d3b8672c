import logging
import os
import sys
import threading
import time
import weakref

import pytest
from PySide6.QtCore import QTimer

from mosaic.gui.log import LogFile, report_uncaught_errors, start_log
from mosaic.gui.notices import NoticeBar
from mosaic.gui.theme import Theme
from mosaic.gui.watchdog import Watchdog


@pytest.fixture
def started(tmp_path):
    handlers = []

    def start(path=tmp_path / "logs" / "gym_gui.log"):
        handlers.append(start_log(path))
        return path

    yield start
    for handler in filter(None, handlers):
        logging.getLogger().removeHandler(handler)
        handler.close()


@pytest.fixture
def notices(qtbot, monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    bar = NoticeBar(Theme("light"))
    qtbot.addWidget(bar)
    report_uncaught_errors(bar)
    return bar


def test_a_log_that_is_no_file_keeps_nobody_waiting(tmp_path):
    """A FIFO would wait for its reader, forever."""
    os.mkfifo(tmp_path / "gym_gui.log")

    assert start_log(tmp_path / "gym_gui.log") is None


def test_the_log_belongs_to_its_owner(started):
    path = started()

    logging.getLogger("mosaic.gui").info("The window is open.")

    assert "The window is open." in path.read_text()
    assert path.stat().st_mode & 0o077 == 0


def test_an_uncaught_error_is_shown_in_words_and_logged_with_its_traceback(started, notices):
    path = started()

    try:
        _ = 1 / 0
    except ZeroDivisionError:
        sys.excepthook(*sys.exc_info())

    assert notices.sentence.text() == "Something failed in the window: ZeroDivisionError: division by zero"
    assert "Traceback" in notices.details.toPlainText()
    assert "Traceback" in path.read_text()


def test_ctrl_c_is_no_problem(notices):
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)

    assert not notices.isVisible()


def test_an_error_in_a_thread_is_logged(started, notices):
    path = started()

    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()

    assert "ZeroDivisionError" in path.read_text()


def test_a_full_disk_costs_only_lines(tmp_path):
    log = LogFile("/dev/full", encoding="utf-8")

    log.emit(logging.makeLogRecord({"msg": "a line"}))

    log.close()


def test_a_folder_that_cannot_be_made_means_no_log(tmp_path):
    (tmp_path / "file").write_text("")

    assert start_log(tmp_path / "file" / "gym_gui.log") is None


def test_the_watchdog_names_what_blocked_the_window(qtbot, started):
    path = started()
    watchdog = Watchdog(limit_s=0.1)
    watchdog.start()

    QTimer.singleShot(0, _block_the_window)
    qtbot.waitUntil(lambda: any(block.seconds > 0.3 for block in watchdog.blocks), timeout=20000)
    watchdog.stop()

    assert "_block_the_window" in "".join(block.stack for block in watchdog.blocks)
    assert "The window did not respond for" in path.read_text()


def _block_the_window():
    time.sleep(0.5)


def test_what_is_said_hides_by_itself_and_a_problem_stays(qtbot):
    bar = NoticeBar(Theme("light"))
    qtbot.addWidget(bar)
    bar._timer.setInterval(50)

    bar.say("Copied.")
    qtbot.waitUntil(lambda: not bar.isVisible())
    bar.say("Copied.")
    bar.problem("<b>It</b> failed.", "why")

    assert not bar._timer.isActive()
    assert bar.isVisible()
    assert bar.sentence.text() == "<b>It</b> failed."


def test_the_watchdog_keeps_nothing_of_what_it_looks_at(qapp, qtbot):
    """A QPainter that outlives its paintEvent takes the process down."""
    watchdog = Watchdog(limit_s=0.02)
    watchdog.start()
    seen = []

    class Painter:
        pass

    def paint():
        painter = Painter()
        seen.append(weakref.ref(painter))
        while not looked.wait(0.01):
            pass
        time.sleep(0.1)  # it has looked, and waits for the next tick

    looked = threading.Event()
    threading.Timer(0.3, looked.set).start()
    paint()

    assert seen[0]() is None
    qtbot.waitUntil(lambda: len(watchdog.blocks) > 0)
    watchdog.stop()
    assert "paint" in watchdog.blocks[0].stack
