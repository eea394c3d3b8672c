"""The frame around the pages, with a real daemon behind it."""

import os
import signal

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton, QToolButton, QWidget

from mosaic.gui.app import Options
from mosaic.gui.memory import Memory
from mosaic.gui.shortcuts import ShortcutList
from mosaic.model.states import RunState
from mosaic.present.run_cells import GLYPH


def test_the_places_open_by_mouse_and_by_key(qtbot, open_window):
    window = open_window()
    assert window.centre.place == "runs"

    window.sidebar.buttons["workers"].click()
    assert window.centre.place == "workers"
    assert window.topbar.title.text() == "Workers"

    qtbot.keyClick(window, Qt.Key.Key_2, Qt.KeyboardModifier.AltModifier)
    assert window.centre.place == "compare"
    assert [key for key, made in window.sidebar.buttons.items() if made.isChecked()] == ["compare"]


def test_an_opened_run_gets_a_tab_that_esc_leaves_and_ctrl_w_closes(qtbot, open_window, lab):
    run = lab.submit("first & <b>best</b>", steps=5)
    window = open_window()
    qtbot.waitUntil(lambda: run.run_id in window.centre._context.hub.runs, timeout=30000)

    window.centre.open_run(run.run_id)
    assert window.centre.run_id == run.run_id
    assert "first && <b>best</b>" in window.centre.bar.tabText(1)
    assert window.topbar.title.text() == "first & <b>best</b>"

    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert window.centre.run_id == ""

    window.centre.open_run(run.run_id)
    assert window.centre.bar.count() == 2
    qtbot.keyClick(window, Qt.Key.Key_W, Qt.KeyboardModifier.ControlModifier)
    assert window.centre.bar.count() == 1
    assert not window.centre.bar.isVisible()


def test_the_tab_of_a_run_shows_its_state(qtbot, open_window, lab):
    run = lab.submit("short", steps=5)
    window = open_window()
    window.centre.open_run(run.run_id)

    qtbot.waitUntil(lambda: window.centre.bar.tabText(1) == f"{GLYPH['done']} short", timeout=30000)


def test_the_sheet_opens_and_esc_closes_it_before_anything_else(qtbot, open_window):
    window = open_window()
    window.notices.problem("Something is wrong.")

    qtbot.keyClick(window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert window.sheet.isVisible()

    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not window.sheet.isVisible()
    assert window.notices.isVisible()
    assert window.centre.isAncestorOf(QApplication.focusWidget())

    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not window.notices.isVisible()


def test_ctrl_f_takes_the_keyboard_to_the_filter(qtbot, open_window):
    window = open_window()

    qtbot.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)

    assert isinstance(QApplication.focusWidget(), QLineEdit)
    assert window.topbar.isAncestorOf(QApplication.focusWidget())


def test_ctrl_f_below_the_table_searches_the_log(qtbot, open_window, lab):
    run = lab.wait_until_over(lab.submit("spoken", steps=20, stderr_lines=5))
    window = open_window()
    page = window.centre.page("runs")
    page.select(run.run_id)
    qtbot.waitUntil(lambda: page.panel is not None and page.panel.tab is not None, timeout=30000)
    page.panel.tab.show_section("log")
    log = page.panel.tab.section_widget("log")
    qtbot.waitUntil(lambda: log.view.isVisible() and bool(log.view.shown), timeout=30000)
    log.view.setFocus()

    qtbot.keyClick(log.view, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)

    assert QApplication.focusWidget() is log.bar.search


def test_ctrl_f_searches_what_is_shown_wherever_the_keyboard_is(qtbot, open_window, lab):
    run = lab.wait_until_over(lab.submit("spoken", steps=20, stderr_lines=5))
    window = open_window()
    window.centre.open_run(run.run_id, "log")
    tab = window.centre.current

    qtbot.keyClick(tab.header.tabs, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.focusWidget() is tab.section_widget("log").bar.search

    tab.show_section("settings")
    qtbot.keyClick(tab.header.tabs, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.focusWidget() is tab.section_widget("settings").search

    window.centre.show_place("compare")
    qtbot.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.focusWidget() is window.centre.page("compare").field


@pytest.mark.parametrize("key", [Qt.Key.Key_F1, Qt.Key.Key_Question])
def test_the_shortcuts_are_listed(qtbot, open_window, key):
    window = open_window()

    qtbot.keyClick(window, key)

    listed = window.findChild(ShortcutList)
    assert listed is not None
    assert listed.isVisible()
    listed.close()


def test_the_status_line_counts_the_runs(qtbot, open_window, lab):
    window = open_window()
    run = lab.submit("long", steps=100000, rate=20)

    qtbot.waitUntil(lambda: "1 running" in window.status.line.text(), timeout=30000)

    lab.client.cancel_run(run.run_id)
    qtbot.waitUntil(lambda: "nothing running" in window.status.line.text(), timeout=30000)


def test_a_lost_daemon_greys_the_pages_and_comes_back(qtbot, open_window, lab):
    run = lab.submit("kept", steps=5)
    lab.wait_for(run, RunState.TERMINATED)
    window = open_window()
    hub = window.centre._context.hub
    qtbot.waitUntil(lambda: run.run_id in hub.runs, timeout=30000)

    lab.kill_daemon()
    qtbot.waitUntil(window.veil.isVisible, timeout=30000)
    assert window.banner.sentence.text().startswith("Reconnecting to the daemon…")
    assert run.run_id in hub.runs

    window.banner.start_button.click()
    qtbot.waitUntil(lambda: not window.veil.isVisible() and not window.banner.isVisible(), timeout=60000)
    assert "daemon ok" in window.status.line.text()


def test_layout_place_and_theme_are_remembered(qtbot, open_window, lab):
    window = open_window(Options(theme="dark"))
    window.resize(900, 640)  # fits the screen of the offscreen platform
    window.centre.show_place("workers")
    window.close()

    again = open_window(Options())

    assert (again.width(), again.height()) == (900, 640)
    assert again.centre.place == "workers"
    assert again.centre._context.theme.name == "dark"


def test_a_reset_forgets(qtbot, open_window, lab):
    window = open_window(Options(theme="dark"))
    window.centre.show_place("workers")
    window.close()

    again = open_window(Options(is_reset=True))

    assert again.centre.place == "runs"
    assert again.centre._context.theme.name == "system"


def test_the_menu_resets_the_layout(qtbot, open_window, lab):
    window = open_window(Options(theme="dark"))
    window.resize(700, 500)
    window.centre.show_place("workers")
    window.menu.reset_layout.trigger()

    assert "layout is reset" in window.notices.sentence.text()
    assert (window.width(), window.height()) != (700, 500)
    assert window.centre._context.memory.value("window/theme", "system") == "system"


@pytest.mark.parametrize("text", ["\x00\xff damaged", "[window]\nplace=42\ngeometry=@Invalid()\ntheme=[1,2]"])
def test_a_damaged_memory_is_an_empty_one(qtbot, open_window, lab, text):
    lab.root.window_settings.write_text(text)

    window = open_window(Options())

    assert window.centre.place == "runs"


def test_what_is_remembered_belongs_to_its_owner(tmp_path):
    path = tmp_path / "gui.ini"

    memory = Memory(path)
    memory.remember("a/b", "c")
    memory.save()

    assert path.stat().st_mode & 0o077 == 0
    assert Memory(path).value("a/b", "") == "c"


def test_a_narrow_window_shows_only_the_glyphs(qtbot, open_window):
    window = open_window()

    window.resize(1000, 700)
    qtbot.waitUntil(lambda: window.sidebar.width() < 60)

    window.resize(1400, 700)
    qtbot.waitUntil(lambda: window.sidebar.width() > 100)


def test_every_control_of_the_frame_has_a_name_for_screen_readers(qtbot, open_window):
    window = open_window()

    for bar in (window.sidebar, window.topbar, window.notices, window.banner):
        for made in bar.findChildren(QPushButton) + bar.findChildren(QToolButton):
            if not isinstance(made.parent(), QLineEdit):  # Qt's own button that clears the field
                assert made.accessibleName() or made.text(), made.objectName()


def test_closing_the_window_leaves_runs_and_daemon_alone(qtbot, open_window, lab):
    run = lab.submit("goes on", steps=100000, rate=20)
    lab.wait_for(run, RunState.EXECUTING)
    window = open_window()

    window.close()

    assert lab.state(run) is RunState.EXECUTING


class ShownWindows(QObject):
    """Records every window that is shown, even for a moment."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def eventFilter(self, watched, event):
        if event.type() is QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self.seen.append(f"{type(watched).__name__} {watched.objectName()}")
        return False


def test_no_part_of_a_page_is_ever_a_window_of_its_own(qtbot, qapp, open_window, lab):
    run = lab.submit("shown", steps=5)
    shown = ShownWindows()
    qapp.installEventFilter(shown)
    window = open_window()

    for place in ("compare", "operators", "workers", "runs"):
        window.centre.show_place(place)
    for mode in ("train", "script", "resume", "evaluate"):
        window.sheet.open(mode)
    window.centre.open_run(run.run_id, "curves")
    qtbot.waitUntil(lambda: "nothing running" in window.status.line.text(), timeout=30000)
    qapp.removeEventFilter(shown)

    assert shown.seen == ["Window window"]


def test_the_window_is_painted_before_the_daemon_answers(qtbot, open_window, lab):
    """No absolute time: a daemon that does not answer at all must not delay the frame."""
    pid = lab.daemon_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        window = open_window(is_ready=False)
        painted = window.grab()
        state = window.centre._context.hub.connection.state
    finally:
        os.kill(pid, signal.SIGCONT)

    assert not painted.isNull()
    assert state != "ok"
    qtbot.waitUntil(lambda: window.centre._context.hub.connection.state == "ok", timeout=30000)


def test_with_a_warm_daemon_the_runs_are_there_with_the_connection(qtbot, open_window, lab):
    run = lab.wait_for(lab.submit("warm", steps=5), RunState.TERMINATED)

    window = open_window()

    assert run.run_id in window.centre._context.hub.runs
