"""The state of a run: its glyph and its word, in its colour."""

from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QLabel

from mosaic.gui.theme import Theme
from mosaic.gui.widgets.labels import label


class StateBadge(QLabel):
    """Colour is never the only sign: the glyph and the word are always there."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        plain = label()
        self.setTextFormat(plain.textFormat())
        self.setTextInteractionFlags(plain.textInteractionFlags())
        self.setFocusPolicy(plain.focusPolicy())
        self._theme = theme
        self._kind = "waiting"
        theme.changed.connect(self._colour)

    def show_state(self, glyph: str, word: str, kind: str) -> None:
        """`kind`: running, done, failed, waiting or cancelled, the theme's names of state colours."""
        self.setText(f"{glyph} {word}")
        self.setAccessibleName(word)
        self._kind = kind
        self._colour()

    def _colour(self) -> None:
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.WindowText, QColor(getattr(self._theme.colours, self._kind)))
        self.setPalette(palette)
