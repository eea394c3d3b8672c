"""What the mouse does in a chart: drag to choose a range, wheel to zoom, Shift and drag to move."""

from collections.abc import Callable
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt, Signal

LEAST_PX = 6  # a shorter drag is a click
FLAT_PX = 24  # a drag this flat chooses only x, one this narrow only y


class ChartView(pg.ViewBox):
    """Never changes its range itself: it reports what the user chose, and the chart decides."""

    chosen = Signal(object, object)  # (left, right) or None, (bottom, top) or None
    menu_wanted = Signal(object)  # the position on the screen

    def __init__(self) -> None:
        super().__init__(enableMenu=False, defaultPadding=0.0)
        self.disableAutoRange()
        self.may_wheel: Callable[[Any], bool] = lambda event: True

    def wheelEvent(self, event: Any, axis: int | None = None) -> None:
        if not self.may_wheel(event):
            event.ignore()
            return
        factor = 0.999 ** event.delta()
        place = self.mapSceneToView(event.scenePos())
        is_vertical = axis == 1 or bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        self.zoom(factor, is_vertical, place.y() if is_vertical else place.x())
        event.accept()

    def zoom(self, factor: float, is_vertical: bool = False, centre: float | None = None) -> None:
        low, high = self.viewRange()[1 if is_vertical else 0]
        middle = (low + high) / 2 if centre is None else centre
        self._choose((middle - (middle - low) * factor, middle + (high - middle) * factor), is_vertical)

    def pan(self, share: float, is_vertical: bool = False) -> None:
        low, high = self.viewRange()[1 if is_vertical else 0]
        shift = (high - low) * share
        self._choose((low + shift, high + shift), is_vertical)

    def mouseDragEvent(self, event: Any, axis: int | None = None) -> None:
        event.accept()
        is_move = event.button() == Qt.MouseButton.MiddleButton or bool(
            event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        )
        if event.button() == Qt.MouseButton.RightButton:
            return
        if is_move:
            self._move(event)
        else:
            self._select(event)

    def mouseClickEvent(self, event: Any) -> None:
        if event.button() == Qt.MouseButton.RightButton:
            event.accept()
            self.menu_wanted.emit(event.screenPos())

    def _choose(self, range_: tuple[float, float], is_vertical: bool) -> None:
        self.chosen.emit(*((None, range_) if is_vertical else (range_, None)))

    def _move(self, event: Any) -> None:
        before, now = self.mapToView(event.lastPos()), self.mapToView(event.pos())
        (left, right), (bottom, top) = self.viewRange()
        across, up = before.x() - now.x(), before.y() - now.y()
        self.chosen.emit((left + across, right + across), (bottom + up, top + up) if up else None)

    def _select(self, event: Any) -> None:
        start, now = event.buttonDownPos(), event.pos()
        width, height = abs(now.x() - start.x()), abs(now.y() - start.y())
        picks_x, picks_y = width >= LEAST_PX and width > FLAT_PX, height >= LEAST_PX and height > FLAT_PX
        if not event.isFinish():
            self._show_box(start, now, picks_x, picks_y)
            return
        self.rbScaleBox.hide()
        if not picks_x and not picks_y:
            return
        corner, other = self.mapToView(start), self.mapToView(now)
        across = (min(corner.x(), other.x()), max(corner.x(), other.x())) if picks_x else None
        up = (min(corner.y(), other.y()), max(corner.y(), other.y())) if picks_y else None
        self.chosen.emit(across, up)

    def _show_box(self, start: Any, now: Any, picks_x: bool, picks_y: bool) -> None:
        area = self.boundingRect()
        box = QRectF(start, now).normalized()
        if not picks_y:
            box.setTop(area.top())
            box.setBottom(area.bottom())
        elif not picks_x:
            box.setLeft(area.left())
            box.setRight(area.right())
        corner, other = self.mapToView(box.topLeft()), self.mapToView(box.bottomRight())
        self.rbScaleBox.setPos(corner)
        self.rbScaleBox.setTransform(self._scaled(other.x() - corner.x(), other.y() - corner.y()))
        self.rbScaleBox.show()

    @staticmethod
    def _scaled(width: float, height: float) -> Any:
        return pg.QtGui.QTransform.fromScale(width, height)
