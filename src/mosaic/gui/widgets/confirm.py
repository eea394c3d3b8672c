"""A question before something is lost."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget


def ask_to_confirm(parent: QWidget, sentence: str, button: str, then: Callable[[], object]) -> QMessageBox:
    """Ask without blocking: `then` is called if the user presses the button named `button`. Esc and Enter do not."""
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setObjectName("confirm")
    box.setWindowTitle("MOSAIC")
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(sentence)
    yes = box.addButton(button.replace("&", "&&"), QMessageBox.ButtonRole.DestructiveRole)
    yes.setProperty("kind", "danger")
    yes.setObjectName("confirm.yes")
    # Not "Cancel": beside "Cancel run" nobody would know which is which.
    back = box.addButton("Go back", QMessageBox.ButtonRole.RejectRole)
    back.setObjectName("confirm.back")
    box.setDefaultButton(back)
    box.setEscapeButton(back)
    yes.clicked.connect(lambda: then())
    box.open()
    return box
