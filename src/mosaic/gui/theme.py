"""The two palettes, and which one is in force."""

from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from mosaic.gui.stylesheet import stylesheet

NAMES = ("system", "light", "dark")


@dataclass(frozen=True)
class Colours:
    ground: str
    surface: str
    hover: str  # a row or a button under the mouse
    line: str
    border: str  # of a field: visible where a hairline would not be
    text: str
    muted: str
    accent: str
    on_accent: str  # text on the accent
    selection: str  # ground of what is selected
    running: str
    done: str
    failed: str
    waiting: str
    cancelled: str
    warning: str
    curves: tuple[str, ...]  # Okabe-Ito order


LIGHT = Colours(
    ground="#FFFFFF",
    surface="#F6F7F9",
    hover="#ECEEF2",
    line="#DADDE3",
    border="#B9BFC9",
    text="#1B1E24",
    muted="#5A6270",
    accent="#2F6FEB",
    on_accent="#FFFFFF",
    selection="#DCE8FD",
    running="#2563D9",
    done="#1E7B4A",
    failed="#C4302B",
    waiting="#5A6270",
    cancelled="#5A6270",
    warning="#8A5A00",
    curves=("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8A7A00", "#000000"),
)
DARK = Colours(
    ground="#15171B",
    surface="#1D2026",
    hover="#272B33",
    line="#343944",
    border="#4A515F",
    text="#E7EAF0",
    muted="#9AA3B2",
    accent="#6EA0FF",
    on_accent="#0E1420",
    selection="#243B66",
    running="#6EA0FF",
    done="#5CC48D",
    failed="#FF7A70",
    waiting="#9AA3B2",
    cancelled="#9AA3B2",
    warning="#F0B44C",
    curves=("#5AB4F0", "#FFC04D", "#3DD6A5", "#FF8A4C", "#E6A3C8", "#9AD7FF", "#F0E442", "#E7EAF0"),
)


class Theme(QObject):
    """The colours in force. Views that paint by themselves repaint on `changed`."""

    changed = Signal()

    def __init__(self, name: str = "light") -> None:
        super().__init__()
        self.name = name
        self.colours = self._resolve()
        self._application: QApplication | None = None

    @property
    def is_dark(self) -> bool:
        return self.colours is DARK

    def choose(self, name: str) -> None:
        """Use the theme `system`, `light` or `dark` from now on."""
        self.name = name
        self._refresh()

    def dress(self, application: QApplication) -> None:
        """Give the application our style, font and colours, now and after every change."""
        self._application = application
        application.setStyle("Fusion")
        application.setFont(text_font())
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        self.colours = self._resolve()
        if self._application:
            self._application.setPalette(palette(self.colours))
            self._application.setStyleSheet(
                stylesheet(self.colours, "dark" if self.is_dark else "light", mono_family())
            )
        self.changed.emit()

    def _resolve(self) -> Colours:
        if self.name == "system":
            return DARK if QGuiApplication.styleHints().colorScheme() is Qt.ColorScheme.Dark else LIGHT
        return DARK if self.name == "dark" else LIGHT


def text_font() -> QFont:
    """The system's font, 13 px, with digits of equal width."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    font.setPixelSize(13)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def mono_family() -> str:
    return QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()


def palette(colours: Colours) -> QPalette:
    """For what the stylesheet does not reach: item views, plain text, links."""
    roles = QPalette.ColorRole
    made = QPalette()
    for role, colour in {
        roles.Window: colours.ground,
        roles.WindowText: colours.text,
        roles.Base: colours.ground,
        roles.AlternateBase: colours.surface,
        roles.Text: colours.text,
        roles.PlaceholderText: colours.muted,
        roles.Button: colours.surface,
        roles.ButtonText: colours.text,
        roles.BrightText: colours.failed,
        roles.ToolTipBase: colours.surface,
        roles.ToolTipText: colours.text,
        roles.Highlight: colours.selection,
        roles.HighlightedText: colours.text,
        roles.Accent: colours.accent,
        roles.Link: colours.accent,
        roles.LinkVisited: colours.accent,
        roles.Light: colours.hover,
        roles.Midlight: colours.hover,
        roles.Mid: colours.line,
        roles.Dark: colours.line,
        roles.Shadow: colours.line,
    }.items():
        made.setColor(role, QColor(colour))
    for role in (roles.WindowText, roles.Text, roles.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, role, QColor(colours.muted))
    return made
