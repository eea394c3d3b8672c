"""The drawing area of a chart: curves, axes, ranges, and what mouse and keyboard do there."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPoint, Qt, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QMouseEvent, QPen
from PySide6.QtWidgets import QFrame, QScrollArea

from mosaic.gui.charts.axis import TickAxis
from mosaic.gui.charts.lines import CurveLines
from mosaic.gui.charts.view import ChartView
from mosaic.present.prepared import PreparedCurve
from mosaic.present.ranges import Range, x_range, y_range

if TYPE_CHECKING:
    from mosaic.gui.theme import Theme

PAN, ZOOM = 0.1, 0.8


class Canvas(pg.PlotWidget):
    """Follows the data until the user chooses a range; then keeps it."""

    chose = Signal()  # the user chose a range
    follow_wanted = Signal()
    menu_wanted = Signal(QPoint)
    pointed = Signal(object)  # x under the mouse, or None

    def __init__(self, theme: "Theme") -> None:
        self.view = ChartView()
        self.bottom, self.left = TickAxis("bottom"), TickAxis("left")
        super().__init__(viewBox=self.view, axisItems={"bottom": self.bottom, "left": self.left})
        self._theme = theme
        self.curves: list[PreparedCurve] = []
        self.hidden: set[str] = set()
        self.chosen_x: Range | None = None
        self.chosen_y: Range | None = None
        self._lines: list[CurveLines] = []
        self._cross = pg.InfiniteLine(angle=90, movable=False)
        self._prepare()
        self.paint_in_theme()

    @property
    def is_following(self) -> bool:
        return self.chosen_x is None and self.chosen_y is None

    def shown(self) -> list[PreparedCurve]:
        return [curve for curve in self.curves if curve.series.key not in self.hidden]

    def set_curves(self, curves: Sequence[PreparedCurve]) -> None:
        self.curves = list(curves)
        while len(self._lines) < len(self.curves):
            self._lines.append(CurveLines(self.view))
        while len(self._lines) > len(self.curves):
            self._lines.pop().remove()
        self._paint_lines()

    def set_axes(self, x_axis: str, is_log: bool) -> None:
        if self.bottom.quantity != x_axis:
            self.bottom.name_quantity(x_axis)
        self.left.setLogMode(y=is_log)

    def follow(self) -> None:
        self.chosen_x = self.chosen_y = None
        self.draw()

    def draw(self) -> None:
        """Set the ranges and give Qt what is visible of each curve."""
        left, right = self.chosen_x or x_range(span_of(self.shown()))
        bottom, top = self.chosen_y or y_range(_height(self.shown(), left, right))
        self.view.setRange(xRange=(left, right), yRange=(bottom, top), padding=0, disableAutoRange=False)
        columns = max(64, int(self.view.width()))
        for lines, curve in zip(self._lines, self.curves, strict=True):
            is_shown = curve.series.key not in self.hidden
            lines.set_visible(is_shown)
            if is_shown:
                lines.draw(curve, left, right, columns)

    def point_at(self, x: float | None) -> None:
        """Show the crosshair there."""
        self._cross.setVisible(x is not None)
        if x is not None:
            self._cross.setPos(x)

    def paint_in_theme(self) -> None:
        colours = self._theme.colours
        self.setBackground(QColor(0, 0, 0, 0))
        font = QFont(self.font())
        font.setPixelSize(11)
        for axis in (self.bottom, self.left):
            axis.paint_in(colours.muted, colours.line, font)
        self._cross.setPen(QPen(QColor(colours.muted), 0, Qt.PenStyle.SolidLine))
        selection = QColor(colours.accent)
        self.view.rbScaleBox.setPen(QPen(selection, 0))
        selection.setAlpha(40)
        self.view.rbScaleBox.setBrush(selection)
        self._paint_lines()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves: dict[Qt.Key, Callable[[], object]] = {
            Qt.Key.Key_Left: lambda: self.view.pan(-PAN),
            Qt.Key.Key_Right: lambda: self.view.pan(PAN),
            Qt.Key.Key_Down: lambda: self.view.pan(-PAN, is_vertical=True),
            Qt.Key.Key_Up: lambda: self.view.pan(PAN, is_vertical=True),
            Qt.Key.Key_Plus: lambda: self.view.zoom(ZOOM),
            Qt.Key.Key_Equal: lambda: self.view.zoom(ZOOM),
            Qt.Key.Key_Minus: lambda: self.view.zoom(1 / ZOOM),
            Qt.Key.Key_0: self.follow_wanted.emit,
            Qt.Key.Key_Menu: lambda: self.menu_wanted.emit(self.mapToGlobal(self.rect().center())),
        }
        if move := moves.get(Qt.Key(event.key())):
            move()
        else:
            event.ignore()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        # Here, not in the view: pyqtgraph takes the second press of a quick double click for a drag.
        super().mouseDoubleClickEvent(event)
        if event.button() is Qt.MouseButton.LeftButton:
            self.follow_wanted.emit()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.pointed.emit(None)

    def _prepare(self) -> None:
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(160, 120)
        self.setAntialiasing(True)
        self.hideButtons()
        self.getPlotItem().setMenuEnabled(False)
        self.getPlotItem().layout.setContentsMargins(4, 6, 12, 2)
        self.left.setGrid(255)
        for axis in (self.left, self.bottom):
            axis.setZValue(-1000)  # the grid lies behind the curves
        self._cross.setVisible(False)
        self.view.addItem(self._cross, ignoreBounds=True)
        self.view.may_wheel = self._may_wheel
        self.view.sigResized.connect(self._resized)
        self.view.chosen.connect(self._choose)
        self.view.menu_wanted.connect(lambda place: self.menu_wanted.emit(place.toPoint()))
        self.scene().sigMouseMoved.connect(self._mouse_moved)

    def _paint_lines(self) -> None:
        for lines, curve in zip(self._lines, self.curves, strict=True):
            lines.paint_in(self._theme.colours, curve)

    def _choose(self, across: Range | None, up: Range | None) -> None:
        if not self.curves or not _is_wide_enough(across) or not _is_wide_enough(up):
            return
        self.chosen_x = across or self.chosen_x
        self.chosen_y = up or self.chosen_y
        self.draw()
        self.chose.emit()

    def _resized(self) -> None:
        # Other columns: the curves must be decimated for the new width.
        if self.curves:
            self.draw()

    def _may_wheel(self, event: Any) -> bool:
        """Within a page that scrolls, the wheel scrolls the page, unless this chart has the focus or Ctrl is held."""
        parent = self.parentWidget()
        while parent is not None and not isinstance(parent, QScrollArea):
            parent = parent.parentWidget()
        is_wanted = self.hasFocus() or bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        return parent is None or is_wanted

    def _mouse_moved(self, place: Any) -> None:
        is_inside = self.view.sceneBoundingRect().contains(place)
        self.pointed.emit(self.view.mapSceneToView(place).x() if is_inside else None)


def span_of(curves: Sequence[PreparedCurve]) -> Range | None:
    """From the first to the last x of all curves."""
    spans = [found for curve in curves if (found := curve.x_span())]
    return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None


def _height(curves: Sequence[PreparedCurve], left: float, right: float) -> Range | None:
    spans = [found for curve in curves if (found := curve.y_span(left, right))]
    return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None


def _is_wide_enough(range_: Range | None) -> bool:
    """Whether float64 can tell the ends apart with room for a picture between them."""
    if range_ is None:
        return True
    low, high = range_
    return high - low > max(abs(low), abs(high), 1e-300) * 1e-12
