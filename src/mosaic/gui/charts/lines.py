"""One curve on the canvas: values, smoothed curve, band of extremes, and dots where no line would be seen."""

from typing import TYPE_CHECKING

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QPen

from mosaic.gui.charts.band import Band
from mosaic.gui.charts.pens import BAND_ALPHA, curve_colour, curve_pen, raw_pen
from mosaic.present.decimation import Floats
from mosaic.present.prepared import PreparedCurve, isolated

if TYPE_CHECKING:
    from mosaic.gui.theme import Colours

MOST_DOTS = 400


class CurveLines:
    def __init__(self, view: pg.ViewBox) -> None:
        self._view = view
        self.band, self.dots = Band(), pg.ScatterPlotItem(pxMode=True, size=5, pen=None)
        self.raw, self.line = pg.PlotCurveItem(antialias=True), pg.PlotCurveItem(antialias=True)
        for depth, item in enumerate((self.band, self.raw, self.line, self.dots)):
            item.setZValue(depth)
            view.addItem(item, ignoreBounds=True)

    def remove(self) -> None:
        for item in (self.band, self.raw, self.line, self.dots):
            self._view.removeItem(item)

    def set_visible(self, is_visible: bool) -> None:
        for item in (self.band, self.raw, self.line, self.dots):
            item.setVisible(is_visible)

    def paint_in(self, colours: "Colours", curve: PreparedCurve) -> None:
        index, is_faded = curve.series.colour, curve.series.is_faded
        self.line.setPen(curve_pen(colours, index, is_faded))
        self.raw.setPen(raw_pen(colours, index, is_faded))
        self.band.set_colour(curve_colour(colours, index, is_faded, BAND_ALPHA))
        self.dots.setBrush(curve_colour(colours, index, is_faded))
        self.dots.setPen(QPen(curve_colour(colours, index, is_faded, 0)))

    @staticmethod
    def _give(item: pg.PlotCurveItem, x: Floats, y: Floats, columns: int, is_smooth: bool) -> None:
        # A dense zigzag fills its columns; smooth edges would cost ten times as much and show no difference.
        is_dense = len(x) > columns
        is_dashed = (
            item.opts["pen"].style() == Qt.PenStyle.CustomDashLine
        )  # in segments, each would begin its dashes anew
        item.setSegmentedLineMode("on" if is_dense and not is_dashed else "off")
        item.setData(x, y, connect="finite", antialias=is_smooth or not is_dense)

    def draw(self, curve: PreparedCurve, left: float, right: float, columns: int) -> None:
        x, y = curve.line(left, right, columns)
        self._give(self.line, x, y, columns, curve.is_smoothed)
        raw_x, raw_y = curve.raw_line(left, right, columns) if curve.is_smoothed else (x[:0], y[:0])
        self._give(self.raw, raw_x, raw_y, columns, is_smooth=False)
        self.band.set_data(*curve.band(left, right, columns))
        alone = isolated(y)
        is_few = 0 < alone.sum() <= MOST_DOTS
        self.dots.setData(x[alone] if is_few else x[:0], y[alone] if is_few else y[:0])
