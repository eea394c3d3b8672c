"""The controls below a frame. On a narrow view the last ones move into a menu."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QMenu, QSizePolicy, QToolButton, QWidget

from mosaic.gui.widgets.tip import set_tip


class FrameBar(QWidget):
    """The actions are public: the tab connects them and adds their shortcuts."""

    def __init__(self) -> None:
        super().__init__()
        self.pause = _action("Pause", "pause", "Space", "Stop watching; the run continues", is_checkable=True)
        self.metrics = _action("Metrics", "metrics", "M", "Show reward, return and speed on the frame", True)
        self.save = _action("Save picture…", "save", "Ctrl+S", "Save this frame as PNG")
        self.record = _action("Record clip", "record", "R", "Record up to 10 s as GIF", True)
        self.copy = _action("Copy", "copy", "Ctrl+C", "Copy this frame to the clipboard")
        self.full_screen = _action("Full screen", "full_screen", "F11", "Fill the screen with the frame", True)
        self.choice = QComboBox()
        self.choice.setObjectName("frames.choice")
        self.choice.setAccessibleName("Which environment is shown")
        self.choice.setVisible(False)
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._early = [self._add(action) for action in (self.pause, self.metrics)]
        self._layout.addWidget(self.choice)
        self._layout.addStretch(1)
        self._late = [self._add(action) for action in (self.save, self.record, self.copy, self.full_screen)]
        self._more = self._more_button()
        # Wide enough for the first buttons and the menu; the rest is hidden before it would be cut off.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    @property
    def actions_of_view(self) -> tuple[QAction, ...]:
        return self.pause, self.metrics, self.save, self.record, self.copy, self.full_screen

    def offer(self, names: list[str]) -> None:
        """Which pictures there are; the choice is hidden while there is only one."""
        here = [self.choice.itemText(place) for place in range(self.choice.count())]
        if names == here:
            return
        self.choice.blockSignals(True)
        kept = self.choice.currentText()
        self.choice.clear()
        self.choice.addItems(names)
        self.choice.setCurrentIndex(max(0, self.choice.findText(kept, Qt.MatchFlag.MatchExactly)))
        self.choice.blockSignals(False)
        self.choice.setVisible(len(names) > 1)
        self._fold()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold()

    def _fold(self) -> None:
        choice = [self.choice] if self.choice.count() > 1 else []
        needed = sum(widget.sizeHint().width() for widget in (*self._early, *choice, *self._late))
        is_wide = self.width() >= needed
        for button in self._late:
            button.setVisible(is_wide)
        self._more.setVisible(not is_wide)
        first = (*self._early, *choice, self._more)
        self._early[1].setVisible(is_wide or self.width() >= sum(widget.sizeHint().width() for widget in first))

    def _add(self, action: QAction) -> QToolButton:
        made = QToolButton()
        made.setProperty("kind", "flat")
        made.setDefaultAction(action)
        made.setObjectName(f"{action.objectName()}.button")
        made.setAccessibleName(action.text())
        made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        set_tip(made, f"{action.statusTip()} · {action.shortcut().toString()}")
        self._layout.addWidget(made)
        return made

    def _more_button(self) -> QToolButton:
        made = QToolButton()
        made.setProperty("kind", "flat")
        made.setObjectName("frames.more")
        made.setText("More")
        made.setAccessibleName("More actions on this frame")
        made.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        menu = QMenu(made)
        menu.addActions([self.metrics, self.save, self.record, self.copy, self.full_screen])
        made.setMenu(menu)
        self._layout.addWidget(made)
        return made


def _action(text: str, name: str, keys: str, tip: str, is_checkable: bool = False) -> QAction:
    made = QAction(text)
    made.setObjectName(f"frames.{name}")
    made.setShortcut(QKeySequence(keys))
    # Only while the frame has the keyboard: elsewhere Space presses a button and Ctrl+C copies text.
    made.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
    made.setStatusTip(tip)
    made.setCheckable(is_checkable)
    return made
