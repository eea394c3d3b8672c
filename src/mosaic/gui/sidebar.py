"""The bar on the left: the four places."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QSizePolicy, QToolButton, QVBoxLayout

from mosaic.gui.places import PLACES, Place
from mosaic.gui.theme import Theme
from mosaic.gui.widgets.buttons import paint
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.tip import set_tip

WIDE_PX, NARROW_PX = 136, 48


class Sidebar(QFrame):
    """Glyph and word; only the glyph where the window is narrow."""

    chosen = Signal(str)  # the key of a place

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("window.sidebar")
        self.wordmark = label("MOSAIC", "wordmark")
        self.buttons = {place.key: self._button(place, number, theme) for number, place in enumerate(PLACES, start=1)}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 14, 8, 8)
        layout.setSpacing(4)
        layout.addWidget(self.wordmark)
        layout.addSpacing(10)
        for made in self.buttons.values():
            layout.addWidget(made)
        layout.addStretch(1)
        self.wordmark.setContentsMargins(8, 0, 0, 0)
        self.set_narrow(False)

    def mark(self, key: str) -> None:
        """Show which place is open."""
        for name, made in self.buttons.items():
            made.setChecked(name == key)

    def set_narrow(self, is_narrow: bool) -> None:
        style = Qt.ToolButtonStyle.ToolButtonIconOnly if is_narrow else Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        self.setFixedWidth(NARROW_PX if is_narrow else WIDE_PX)
        self.wordmark.setText("M" if is_narrow else "MOSAIC")
        for made in self.buttons.values():
            made.setToolButtonStyle(style)

    def _button(self, place: Place, number: int, theme: Theme) -> QToolButton:
        made = QToolButton()
        made.setText(f"  {place.title}")
        made.setCheckable(True)
        made.setProperty("kind", "place")
        made.setObjectName(f"window.place.{place.key}")
        made.setAccessibleName(place.title)
        made.setIconSize(QSize(16, 16))
        made.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_tip(made, f"{place.title}: {place.tip[0].lower()}{place.tip[1:]} · Alt+{number}")
        paint(made, theme, place.picture, "text")
        made.clicked.connect(lambda: self.chosen.emit(place.key))
        return made
