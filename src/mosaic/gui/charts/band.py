"""The faint fill between the lowest and the highest values of a curve's points."""

from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainterPath

from mosaic.present.decimation import Floats


class Band(pg.GraphicsObject):
    def __init__(self) -> None:
        super().__init__()
        self._path = QPainterPath()
        self._colour = QColor()

    def set_data(self, x: Floats, low: Floats, high: Floats) -> None:
        self.prepareGeometryChange()
        self._path = QPainterPath()
        for part in _finite_parts(np.isfinite(low) & np.isfinite(high)):
            across = np.concatenate((x[part], x[part][::-1]))
            up = np.concatenate((low[part], high[part][::-1]))
            self._path.addPath(pg.arrayToQPath(across, up))
        self.update()

    def set_colour(self, colour: QColor) -> None:
        self._colour = colour
        self.update()

    def boundingRect(self) -> QRectF:
        return self._path.boundingRect()

    def paint(self, painter: Any, *_: Any) -> None:
        painter.fillPath(self._path, self._colour)


def _finite_parts(is_finite: "np.ndarray[Any, np.dtype[np.bool_]]") -> list[slice]:
    """The runs of points without a gap."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_finite, [False]))))
    return [slice(int(first), int(end)) for first, end in zip(edges[0::2], edges[1::2], strict=True)]
