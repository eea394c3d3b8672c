"""The menus that choose the grouping and the columns."""

from collections.abc import Callable

from PySide6.QtCore import QPoint
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from mosaic.gui.runs.columns import ColumnChoice
from mosaic.gui.widgets.buttons import button
from mosaic.present.run_cells import COLUMNS
from mosaic.present.run_groups import GROUPINGS


class GroupButton:
    """`Group: none ▾`. `choose` is called with a key of GROUPINGS, or with nothing."""

    def __init__(self, choose: Callable[[str], None], parent: QWidget) -> None:
        self.button: QPushButton = button("", self._open, "flat", "Divide the list into groups", name="runs.group")
        self.menu = QMenu(parent)
        self.menu.setObjectName("runs.group_menu")
        group = QActionGroup(self.menu)
        self._actions: dict[str, QAction] = {}
        for key in ("", *GROUPINGS):
            action = self.menu.addAction(GROUPINGS[key].title if key else "No groups")
            action.setCheckable(True)
            action.triggered.connect(lambda _, key=key: choose(key))
            group.addAction(action)
            self._actions[key] = action

    def show_choice(self, key: str) -> None:
        self._actions[key].setChecked(True)
        words = f"Group: {GROUPINGS[key].title.lower()} ▾" if key else "Group ▾"
        self.button.setText(words)
        self.button.setAccessibleName(words.removesuffix(" ▾"))

    def _open(self) -> None:
        self.menu.popup(self.button.mapToGlobal(self.button.rect().bottomLeft()))


class ColumnMenu:
    """Which columns are shown. The name cannot be hidden."""

    def __init__(self, columns: ColumnChoice, changed: Callable[[], None], parent: QWidget) -> None:
        self.button = button("Columns ▾", self._open, "flat", "Choose the columns", name="runs.columns")
        self.button.setAccessibleName("Columns")
        self.menu = QMenu(parent)
        self.menu.setObjectName("runs.column_menu")
        self._columns = columns
        self._changed = changed
        self._actions = {column.key: self._action(column.key, column.title) for column in COLUMNS}
        self._actions["name"].setEnabled(False)
        self.menu.addSeparator()
        self.menu.addAction("Reset columns").triggered.connect(self._reset)

    def _action(self, key: str, title: str) -> QAction:
        action = self.menu.addAction(title)
        action.setCheckable(True)
        action.setChecked(key not in self._columns.hidden)
        action.triggered.connect(lambda is_shown: self._choose(key, is_shown))
        return action

    def _choose(self, key: str, is_shown: bool) -> None:
        self._columns.set_hidden(key, not is_shown)
        self._changed()

    def _reset(self) -> None:
        self._columns.reset()
        for key, action in self._actions.items():
            action.setChecked(key not in self._columns.hidden)
        self._changed()

    def popup(self, at: QPoint) -> None:
        self.menu.popup(at)

    def _open(self) -> None:
        self.popup(self.button.mapToGlobal(self.button.rect().bottomLeft()))
