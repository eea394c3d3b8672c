"""Apply the stylesheet again after a property that it reads has changed."""

from typing import Any

from PySide6.QtWidgets import QWidget


def set_property(widget: QWidget, name: str, value: Any) -> None:
    """Set a property such as `wrong` or `kind`, and draw the widget accordingly."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        repolish(widget)


def repolish(widget: QWidget) -> None:
    widget.style().unpolish(widget)
    widget.style().polish(widget)
    widget.update()
