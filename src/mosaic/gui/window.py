"""The window: bars around the pages. What a page shows is its own business."""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from PySide6.QtCore import QByteArray, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from mosaic.gui.centre import TITLES, Centre
from mosaic.gui.connection_banner import ConnectionBanner
from mosaic.gui.menu import MainMenu
from mosaic.gui.places import PLACES
from mosaic.gui.side_sheet import SideSheet
from mosaic.gui.sidebar import Sidebar
from mosaic.gui.status_bar import StatusBar
from mosaic.gui.topbar import TopBar
from mosaic.gui.veil import Veil
from mosaic.present.run_cells import name_of

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.hub.connection import Connection
    from mosaic.gui.notices import NoticeBar

SMALLEST = QSize(900, 560)
FIRST = QSize(1280, 800)
FRAME = QSize(16, 48)  # what a window manager adds around the first size
NARROW_PX = 1180  # below this width the bar on the left shows glyphs only


@runtime_checkable
class Refreshable(Protocol):
    """A page that can load again on F5."""

    def refresh(self) -> None: ...


@runtime_checkable
class Searchable(Protocol):
    """A page that can take the keyboard to its search field on Ctrl+F."""

    def focus_search(self) -> None: ...


class Window(QWidget):
    closed = Signal()

    def __init__(self, context: "Context", notices: "NoticeBar") -> None:
        super().__init__()
        self._context = context
        self.setObjectName("window")
        self.setWindowTitle(f"MOSAIC — {context.host}" if context.host else "MOSAIC")
        self.setMinimumSize(SMALLEST)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.notices = notices
        self.sidebar = Sidebar(context.theme)
        self.menu = MainMenu(context, self)
        self.topbar = TopBar(context.theme, self.menu)
        self.banner = ConnectionBanner(context)
        self.centre = Centre(context)
        self.veil = Veil(self.centre, context.theme)
        self.sheet = SideSheet(context)
        self.status = StatusBar(context)
        self._lay_out()
        self._connect()
        self._add_shortcuts()
        self._restore()

    def open_first_place(self) -> None:
        """Show the place that was open last time; app.py calls it after the first paint."""
        remembered = self._context.memory.value("window/place", "runs")
        self._choose_place(remembered if remembered in TITLES else "runs")

    def reset_layout(self) -> None:
        self._context.memory.reset()
        self.resize(FIRST)
        self._context.notices.say("The layout is reset. Open the window again to see every part as it was at first.")

    # ---- building

    def _lay_out(self) -> None:
        middle = QHBoxLayout()
        middle.setSpacing(0)
        middle.addWidget(self.centre, 1)
        middle.addWidget(self.sheet)
        right = QVBoxLayout()
        right.setSpacing(0)
        for widget in (self.topbar, self.banner, self.notices):
            right.addWidget(widget)
        right.addLayout(middle, 1)
        across = QHBoxLayout()
        across.setSpacing(0)
        across.addWidget(self.sidebar)
        across.addLayout(right, 1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addLayout(across, 1)
        whole.addWidget(self.status)

    def _connect(self) -> None:
        self.sidebar.chosen.connect(self._choose_place)
        self.topbar.new_run_pressed.connect(self.sheet.open)
        self.centre.changed.connect(self._show_where)
        self.centre.renamed.connect(self._show_where)
        self.sheet.was_closed.connect(self._focus_page)
        self.centre.built.connect(self._adopt_filter)
        self.menu.reset_layout.triggered.connect(self.reset_layout)
        self._context.hub.connection_changed.connect(self._show_connection)

    def _add_shortcuts(self) -> None:
        actions = {
            "Ctrl+N": self.sheet.open,
            "Ctrl+W": self.centre.close_current,
            "F1": self.menu.show_shortcuts,
            "?": self.menu.show_shortcuts,
            "Ctrl+PgUp": lambda: self._step_tab(-1),
            "Ctrl+PgDown": lambda: self._step_tab(1),
        }
        for key, action in actions.items():
            QShortcut(QKeySequence(key), self).activated.connect(lambda act=action: act())
        for number, place in enumerate(PLACES, start=1):
            shortcut = QShortcut(QKeySequence(f"Alt+{number}"), self)
            shortcut.activated.connect(lambda key=place.key: self._choose_place(key))

    def _adopt_filter(self, key: str) -> None:
        if key == "runs":
            self.topbar.adopt_field(self.centre.page("runs").filter_field)

    # ---- what happens

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Keys that the page in front has not used: it may have its own Esc, search or F5."""
        if event.key() == Qt.Key.Key_Escape:
            _ = self.sheet.close_sheet() or self.notices.dismiss() or self.centre.go_back()
        elif event.matches(QKeySequence.StandardKey.Find):
            self._search()
        elif event.key() == Qt.Key.Key_F5:
            if isinstance(self.centre.current, Refreshable):
                self.centre.current.refresh()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.sidebar.set_narrow(self.width() < NARROW_PX)
        super().resizeEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._context.memory.remember("window/geometry", self.saveGeometry())
        self._context.memory.remember("window/place", self.centre.place or "runs")
        self._context.memory.save()
        super().closeEvent(event)
        self.closed.emit()

    def _choose_place(self, key: str) -> None:
        self.centre.show_place(key)

    def _focus_page(self) -> None:
        if self.centre.current:
            self.centre.current.setFocus()

    def _step_tab(self, by: int) -> None:
        bar = self.centre.bar
        bar.setCurrentIndex((bar.currentIndex() + by) % bar.count())

    def _search(self) -> None:
        page = self.centre.current
        if isinstance(page, Searchable):
            page.focus_search()

    def _show_where(self) -> None:
        run_id = self.centre.run_id
        self.sidebar.mark("" if run_id else self.centre.place)
        if run_id:
            run = self._context.hub.runs.get(run_id)
            self.topbar.show_title(name_of(run) if run else run_id)
        elif self.centre.place == "runs":
            self.topbar.show_field()
        else:
            self.topbar.show_title(TITLES[self.centre.place])

    def _show_connection(self, connection: "Connection") -> None:
        self.veil.cover(connection.state == "lost")

    def _restore(self) -> None:
        self.resize(FIRST.boundedTo(self.screen().availableSize() - FRAME))
        geometry = self._context.memory.value("window/geometry")
        if isinstance(geometry, QByteArray):
            self.restoreGeometry(geometry)
        self._show_connection(self._context.hub.connection)
        self.banner.show_connection(self._context.hub.connection)
