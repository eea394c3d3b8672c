"""Small line drawings from gui/icons, in a colour of the theme."""

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from mosaic.gui.stylesheet import ICONS

# One picture per scale of the screen.
SCALES = (1, 2, 3)


@lru_cache(maxsize=128)
def icon(name: str, colour: str, size: int = 16) -> QIcon:
    """The drawing `name`.svg; it is drawn in black and recoloured here."""
    text = (ICONS / f"{name}.svg").read_text().replace("#000000", colour)
    renderer = QSvgRenderer(QByteArray(text.encode()))
    made = QIcon()
    for scale in SCALES:
        made.addPixmap(_drawn(renderer, size, scale))
    return made


def _drawn(renderer: QSvgRenderer, size: int, scale: int) -> QPixmap:
    picture = QPixmap(size * scale, size * scale)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    renderer.render(painter, QRectF(0, 0, size * scale, size * scale))
    painter.end()
    picture.setDevicePixelRatio(scale)
    return picture
