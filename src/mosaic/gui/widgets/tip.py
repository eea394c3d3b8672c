"""Tooltips that show their text as it is."""

import html

from PySide6.QtWidgets import QWidget

from mosaic.present.text import printable


def set_tip(widget: QWidget, text: str) -> None:
    """Show `text` while the mouse rests on the widget. Markup in it is shown, never interpreted."""
    widget.setToolTip(plain_tip(text))
    widget.setAccessibleDescription(text)


def plain_tip(text: str) -> str:
    """The text as a tooltip, also for a model's ToolTipRole. Qt would guess from a `<` that it is markup."""
    lines = [html.escape(printable(line)) for line in text.split("\n")]
    return f"<qt>{'<br>'.join(lines)}</qt>" if text else ""
