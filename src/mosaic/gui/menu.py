"""The menu behind ☰: the theme, the layout, the state folder, about."""

import platform
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QUrl, qVersion
from PySide6.QtGui import QActionGroup, QDesktopServices
from PySide6.QtWidgets import QMenu, QMessageBox, QWidget

from mosaic import __version__
from mosaic.gui.shortcuts import ShortcutList
from mosaic.gui.theme import NAMES

if TYPE_CHECKING:
    from mosaic.gui.context import Context

THEMES = dict(zip(NAMES, ("Theme of the system", "Light", "Dark"), strict=True))


class MainMenu(QMenu):
    def __init__(self, context: "Context", window: QWidget) -> None:
        super().__init__(window)
        self._context = context
        self._window = window
        self.setObjectName("window.menu.list")
        self._add_themes()
        self.addSeparator()
        self.reset_layout = self.addAction("Reset layout and settings")
        self.open_folder = self.addAction("Open the state folder", self._open_folder)
        self.open_folder.setEnabled(context.root is not None)
        self.addSeparator()
        self.shortcuts = self.addAction("Keyboard shortcuts\t?", self.show_shortcuts)
        self.about = self.addAction("About MOSAIC", self._show_about)

    def show_shortcuts(self) -> None:
        ShortcutList(self._window).show()

    def _add_themes(self) -> None:
        group = QActionGroup(self)
        for name, title in THEMES.items():
            action = self.addAction(title)
            action.setCheckable(True)
            action.setChecked(self._context.theme.name == name)
            action.triggered.connect(lambda _=False, chosen=name: self._choose(chosen))
            group.addAction(action)

    def _choose(self, name: str) -> None:
        self._context.theme.choose(name)
        self._context.memory.remember("window/theme", name)

    def _open_folder(self) -> None:
        assert self._context.root is not None
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._context.root.path))):
            self._context.notices.say(f"The state folder is {self._context.root.path}")

    def _show_about(self) -> None:
        box = QMessageBox(self._window)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setObjectName("about")
        box.setWindowTitle("About MOSAIC")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(f"MOSAIC {__version__}")
        root = self._context.root.path if self._context.root else self._context.host
        box.setInformativeText(f"Python {platform.python_version()}, Qt {qVersion()}\n{root}")
        box.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        box.open()
