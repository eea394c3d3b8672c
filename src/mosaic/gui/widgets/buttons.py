"""Buttons. One primary button per view."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QPushButton, QToolButton

from mosaic.gui.theme import Theme
from mosaic.gui.widgets.icons import icon
from mosaic.gui.widgets.tip import set_tip


def button(
    text: str,
    clicked: Callable[[], object] | None = None,
    kind: str = "plain",
    tip: str = "",
    shortcut: str = "",
    name: str = "",
) -> QPushButton:
    """A push button. `kind`: primary, plain, danger, flat. `shortcut`, such as Ctrl+Return, is shown in the tip."""
    made = QPushButton(text)
    made.setProperty("kind", kind)
    made.setObjectName(name)
    made.setAccessibleName(text)
    made.setCursor(Qt.CursorShape.PointingHandCursor)
    made.setAutoDefault(False)
    if shortcut:
        made.setShortcut(QKeySequence(shortcut))
    set_tip(made, " · ".join(filter(None, (tip, shortcut))))
    if clicked:
        made.clicked.connect(lambda: clicked())
    return made


def icon_button(theme: Theme, picture: str, text: str, clicked: Callable[[], object], name: str = "") -> QToolButton:
    """A small button with a drawing; `text` is its tip and its name for screen readers."""
    made = QToolButton()
    made.setProperty("kind", "icon")
    made.setObjectName(name)
    made.setAccessibleName(text)
    made.setIconSize(QSize(16, 16))
    set_tip(made, text)
    paint(made, theme, picture)
    made.clicked.connect(lambda: clicked())
    return made


def paint(made: QToolButton | QPushButton, theme: Theme, picture: str, role: str = "muted") -> None:
    """Give the button a drawing in a colour of the theme, now and after every change of the theme."""

    _Drawing(made, theme, picture, role).draw()


class _Drawing(QObject):
    """Belongs to its button: a connection of the theme to a function would outlive the button."""

    def __init__(self, made: QToolButton | QPushButton, theme: Theme, picture: str, role: str) -> None:
        super().__init__(made)
        self._made, self._theme, self._picture, self._role = made, theme, picture, role
        theme.changed.connect(self.draw)

    def draw(self) -> None:
        self._made.setIcon(icon(self._picture, getattr(self._theme.colours, self._role)))
