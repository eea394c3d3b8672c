"""The actions on the selected runs: buttons above the table as far as there is room, and the menu with all of them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QSizePolicy, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.tip import plain_tip, set_tip
from mosaic.present.run_actions import ACTIONS, RunAction

if TYPE_CHECKING:
    from mosaic.client import Run

BREAKS = ("cancel", "compare", "folder", "delete")  # a line in the menu above these


class ActionBar(QWidget):
    """Actions that do not apply are disabled, and their tooltips say why."""

    def __init__(self, carry_out: Callable[[str], None], table: QWidget, host: str) -> None:
        super().__init__()
        self._host = host
        self._carry_out = carry_out
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.actions_by_key = {action.key: self._action(action, table) for action in ACTIONS}
        self.menu = self._menu(table)
        self._buttons = {action.key: self._button(action) for action in ACTIONS if action.is_in_bar}
        self._more = button("⋯", self._show_menu, "flat", "All actions", name="runs.more")
        self._more.setAccessibleName("All actions")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for made in (*self._buttons.values(), self._more):
            layout.addWidget(made)
        layout.addStretch(1)
        self.show_actions([])

    def _action(self, action: RunAction, table: QWidget) -> QAction:
        made = QAction(action.text, self)
        made.setObjectName(f"runs.{action.key}")
        if action.shortcut:
            made.setShortcut(QKeySequence(action.shortcut))
            made.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        made.triggered.connect(lambda: self._carry_out(action.key))
        if action.key != "open":  # Enter belongs to the table: on a group it opens the group
            table.addAction(made)
        return made

    def _menu(self, table: QWidget) -> QMenu:
        menu = QMenu(table)
        menu.setObjectName("runs.menu")
        menu.setToolTipsVisible(True)
        for key, action in self.actions_by_key.items():
            if key in BREAKS:
                menu.addSeparator()
            menu.addAction(action)
        return menu

    def _button(self, action: RunAction) -> QPushButton:
        return button(action.text, lambda: self._carry_out(action.key), "flat", name=f"runs.button.{action.key}")

    def _show_menu(self) -> None:
        self.menu.popup(self._more.mapToGlobal(self._more.rect().bottomLeft()))

    def show_actions(self, runs: "Sequence[Run]") -> None:
        """Enable what applies to the selected runs."""
        for action in ACTIONS:
            reason = action.why_not(runs, self._host)
            shown = reason or action.about
            made = self.actions_by_key[action.key]
            made.setEnabled(not reason)
            made.setToolTip(plain_tip(shown))
            made.setStatusTip(shown)
            if pressed := self._buttons.get(action.key):
                pressed.setEnabled(not reason)
                set_tip(pressed, shown if reason or not action.shortcut else f"{shown} · {action.shortcut}")

    def minimumSizeHint(self) -> QSize:
        return self._more.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        left = self.width() - self._more.sizeHint().width()
        for made in self._buttons.values():
            left -= made.sizeHint().width()
            made.setVisible(left >= 0)
