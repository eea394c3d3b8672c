"""Keys of the keyboard by the names that the lanes' key maps use."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

NAMES = {
    Qt.Key.Key_Left: "left",
    Qt.Key.Key_Right: "right",
    Qt.Key.Key_Up: "up",
    Qt.Key.Key_Down: "down",
    Qt.Key.Key_Space: " ",
    Qt.Key.Key_Return: "enter",
    Qt.Key.Key_Enter: "enter",
    Qt.Key.Key_Backspace: "back",
    Qt.Key.Key_Home: "home",
    Qt.Key.Key_End: "end",
    Qt.Key.Key_PageUp: "pgup",
    Qt.Key.Key_PageDown: "pgdn",
}
OTHERS = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier


def key_name(event: QKeyEvent) -> str:
    """The name of a key; empty for one that is not for a lane, such as Ctrl+N, Tab or Esc."""
    if event.modifiers() & OTHERS:
        return ""
    named = NAMES.get(Qt.Key(event.key()), "")
    text = event.text()
    return named or (text if len(text) == 1 and text.isprintable() else "")
