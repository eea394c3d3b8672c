"""The colours and dashes of curves."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPen

if TYPE_CHECKING:
    from mosaic.gui.theme import Colours

WIDTH = 1.5
RAW_ALPHA = 64  # 25 %: the values behind their smoothed curve
BAND_ALPHA = 32
# When the colours have been used up, they are used again with the next pattern.
DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 2), (8, 3, 2, 3))


def curve_colour(colours: "Colours", index: int, is_faded: bool = False, alpha: int = 255) -> QColor:
    name = colours.border if is_faded else colours.curves[index % len(colours.curves)]
    colour = QColor(name)
    colour.setAlpha(alpha)
    return colour


def curve_pen(colours: "Colours", index: int, is_faded: bool = False) -> QPen:
    pen = QPen(curve_colour(colours, index, is_faded), WIDTH)
    pen.setCosmetic(True)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    dashes = DASHES[index // len(colours.curves) % len(DASHES)]
    if dashes:
        pen.setDashPattern(list(dashes))
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    return pen


def raw_pen(colours: "Colours", index: int, is_faded: bool = False) -> QPen:
    pen = QPen(curve_colour(colours, index, is_faded, RAW_ALPHA), 1.0)
    pen.setCosmetic(True)
    return pen
