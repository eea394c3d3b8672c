"""Text on a page: never interpreted as markup, and it can be selected and copied."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

KINDS = ("", "title", "heading", "muted", "caption", "mono", "number", "problem")


def label(text: str = "", kind: str = "", wrap: bool = False, name: str = "") -> QLabel:
    """A label in one of the KINDS. A number is right-aligned."""
    made = QLabel()
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setText(text)
    made.setProperty("kind", kind)
    made.setWordWrap(wrap)
    made.setObjectName(name)
    made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    # A click to select text must not take the keyboard from the table or the field in use.
    made.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    if kind == "number":
        made.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return made
