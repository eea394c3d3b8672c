"""Builds the window and everything behind it. Only this file builds things; all others are given them."""

import importlib
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from mosaic import __version__
from mosaic.client.endpoint import is_elsewhere
from mosaic.gui.connecting import Connector
from mosaic.gui.context import Context
from mosaic.gui.garbage import GarbageCollector
from mosaic.gui.hub.hub import TelemetryAsyncHub
from mosaic.gui.log import report_uncaught_errors, start_log
from mosaic.gui.memory import Memory
from mosaic.gui.navigator import WindowNavigator
from mosaic.gui.notices import NoticeBar
from mosaic.gui.theme import Theme
from mosaic.gui.watchdog import Watchdog
from mosaic.gui.window import Window
from mosaic.model.rundir import StateRoot

logger = logging.getLogger(__name__)

# What the first run and the first New run sheet need. pyqtgraph alone takes half a second.
AHEAD = ("mosaic.gui.run_tab.tab", "mosaic.gui.new_run.sheet")


@dataclass(frozen=True)
class Options:
    host: str = ""  # user@box, or empty for this machine
    theme: str = ""  # empty: as last time
    is_reset: bool = False
    is_debug: bool = False


def run(options: Options) -> int:
    """Open the window; return when it is closed. Runs and the daemon continue."""
    home = StateRoot.from_environment()
    start_log(home.window_log, options.is_debug)
    logger.info("MOSAIC %s opens its window.", __version__)
    application = QApplication.instance() or QApplication(["mosaic"])
    assert isinstance(application, QApplication)
    garbage = GarbageCollector()
    garbage.start()  # before the hub: its threads must never destroy a widget
    connector = Connector(home, options.host)
    hub = TelemetryAsyncHub(connector.connect, explain=connector.explain)
    window = build_window(application, home, hub, options)
    report_uncaught_errors(window.notices)
    watchdog = Watchdog() if options.is_debug else None
    if watchdog:
        watchdog.start()
    # Not only with the last window: nothing that a page has opened may keep the process alive.
    window.closed.connect(application.quit)
    hub.start()
    window.show()
    # After the first paint: the frame appears at once, the page when its modules are imported.
    QTimer.singleShot(0, window.open_first_place)
    hub.compute(import_ahead, failed=lambda error: logger.warning("A page cannot be imported: %s", error))
    close_on_signals(window.close)
    code = application.exec()
    if watchdog:
        watchdog.stop()
    hub.stop()
    connector.close()
    logger.info("The window is closed.")
    return code


def build_window(application: QApplication, home: StateRoot, hub: TelemetryAsyncHub, options: Options) -> Window:
    name_application(application)
    memory = Memory(home.window_settings)
    if options.is_reset:
        memory.reset()
    if options.theme:
        memory.remember("window/theme", options.theme)
    theme = Theme(memory.value("window/theme", "system"))
    theme.dress(application)
    notices = NoticeBar(theme)
    navigator = WindowNavigator()
    root = None if options.host or is_elsewhere() else home
    context = Context(hub, memory, theme, root, options.host, navigator, notices)
    window = Window(context, notices)
    navigator.lead(window)
    return window


def import_ahead() -> None:
    """In another thread, while the user looks at the list: importing in the GUI's thread would freeze the window."""
    for name in AHEAD:
        importlib.import_module(name)


def name_application(application: QApplication) -> None:
    application.setApplicationName("MOSAIC")
    application.setApplicationVersion(__version__)
    QGuiApplication.setDesktopFileName("mosaic")


def close_on_signals(close: Callable[[], object]) -> None:
    """Ctrl-C in the terminal closes the window as its button does. The hub's tick lets Python see the signal."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: close())
