"""One chart: a title, a legend, the canvas, and words where there is nothing to draw."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedLayout, QVBoxLayout

from mosaic.gui.charts.canvas import Canvas
from mosaic.gui.charts.chart_menu import open_menu
from mosaic.gui.charts.hover_card import HoverCard, HoverRow
from mosaic.gui.charts.legend import Legend
from mosaic.gui.charts.pens import curve_pen
from mosaic.gui.charts.picture import copy_picture, save_picture
from mosaic.gui.widgets.buttons import button, icon_button
from mosaic.gui.widgets.elided import ElidedLabel
from mosaic.gui.widgets.labels import label
from mosaic.present.axes import place_text
from mosaic.present.curve_table import as_tsv
from mosaic.present.curves import Series
from mosaic.present.prepared import LeftOut, PreparedCurve
from mosaic.present.text import number, printable

if TYPE_CHECKING:
    from mosaic.gui.context import Context

REFRESH_MS = 200
ZOOM_PAUSE_MS = 250  # a zoom is reported when the wheel rests


class Chart(QFrame):
    """1. Draws at most five times per second, and only while visible. 2. Keeps a range that the user chose."""

    zoomed = Signal(float, float)  # the user chose a range of x: there may be more detail for it
    followed = Signal()  # the user went back to the whole curve
    log_chosen = Signal(bool)  # in this chart's menu

    def __init__(self, context: "Context", title: str = "") -> None:
        super().__init__()
        self._context = context
        self._title = title
        self._series: list[Series] = []
        self._smoothing, self._axis, self.is_log = 0.0, "env steps", False
        self._is_stale = False
        self._timer = QTimer(self, interval=REFRESH_MS, singleShot=True)
        self._timer.timeout.connect(self._refresh_if_stale)
        self._zoom_timer = QTimer(self, interval=ZOOM_PAUSE_MS, singleShot=True)
        self._zoom_timer.timeout.connect(self._report_zoom)
        self._build()
        context.theme.changed.connect(self._repaint)

    @property
    def title(self) -> str:
        return self._title

    @property
    def is_following(self) -> bool:
        return self.canvas.is_following

    def set_series(self, series: Sequence[Series]) -> None:
        self._series = list(series)
        self._ask_refresh()

    def set_options(self, smoothing: float | None = None, log_y: bool | None = None, axis: str | None = None) -> None:
        """Each one stays as it is if it is None. On another axis a chosen range means nothing: it is given up."""
        before = (self._smoothing, self.is_log, self._axis)
        self._smoothing = self._smoothing if smoothing is None else smoothing
        self.is_log = self.is_log if log_y is None else log_y
        self._axis = self._axis if axis is None else axis
        if self.is_log != before[1]:
            self.canvas.chosen_y = None
        if self._axis != before[2]:
            self.canvas.chosen_x = None
        if (self._smoothing, self.is_log, self._axis) != before:
            self._show_following()
            self._ask_refresh(is_now=True)

    def follow(self) -> None:
        """Show the whole curve again, and what arrives."""
        self.canvas.follow()
        self._show_following()
        self.followed.emit()

    def refresh(self) -> None:
        """Draw now."""
        self._is_stale = False
        prepared = [PreparedCurve(each, self._smoothing, self.is_log) for each in self._series]
        self.canvas.set_axes(self._axis, self.is_log)
        self.canvas.set_curves(prepared)
        self.canvas.draw()
        self.legend.setVisible(len(self._series) > 1)
        self.legend.set_series(self._series, self.canvas.hidden)
        self._say(prepared)
        self._timer.start()

    def copy_picture(self) -> None:
        copy_picture(self, self._context.theme.colours.ground)
        self._context.notices.say("Picture copied.")

    def copy_data(self) -> None:
        QGuiApplication.clipboard().setText(as_tsv([curve.series for curve in self.canvas.shown()], self._axis))
        self._context.notices.say("Values copied as tab-separated text.")

    def save(self, path: Path) -> None:
        """Write a PNG or an SVG, by the file's ending. PictureError if that fails."""
        self.refresh()
        save_picture(self, self._context.theme.colours.ground, path)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._refresh_if_stale()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def _build(self) -> None:
        theme = self._context.theme
        self.setProperty("kind", "card")
        self.heading = ElidedLabel(self._title, "heading")
        self.follow_button = button(
            "Follow", self.follow, "flat", "Show the whole curve and what arrives", name="chart.follow"
        )
        self.menu_button = icon_button(theme, "menu", "More for this chart", self._open_menu_below, "chart.menu")
        self.legend = Legend(theme)
        self.legend.toggled.connect(self._toggle)
        self.canvas = Canvas(theme)
        self.canvas.setObjectName("chart.canvas")
        self.canvas.chose.connect(self._range_chosen)
        self.canvas.follow_wanted.connect(self.follow)
        self.canvas.menu_wanted.connect(self._open_menu)
        self.canvas.pointed.connect(self._point)
        self.note = label("", "caption", name="chart.note")
        self.empty = label("No values yet.", "muted", name="chart.empty")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.card = HoverCard(theme, self)
        self._lay_out()
        self._show_following()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(12, 4, 4, 0)
        head.addWidget(self.heading, 1)
        head.addWidget(self.follow_button)
        head.addWidget(self.menu_button)
        legend = QHBoxLayout()
        legend.setContentsMargins(8, 0, 8, 0)
        legend.addWidget(self.legend)
        self._body = QStackedLayout()
        self.note.setContentsMargins(12, 0, 12, 6)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 1, 1, 1)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addLayout(legend)
        layout.addLayout(self._body, 1)
        layout.addWidget(self.note)
        # Only now: a stack without a parent would show its first widget as a window of its own.
        self._body.addWidget(self.canvas)
        self._body.addWidget(self.empty)

    def _ask_refresh(self, is_now: bool = False) -> None:
        self._is_stale = True
        if self.isVisible() and (is_now or not self._timer.isActive()):
            self.refresh()

    def _refresh_if_stale(self) -> None:
        if self._is_stale and self.isVisible():
            self.refresh()

    def _say(self, prepared: Sequence[PreparedCurve]) -> None:
        left_out = sum((curve.left_out for curve in prepared), LeftOut()).text()
        has_points = any(len(each.x) for each in self._series)
        self.note.setText(f"{left_out}." if left_out else "")
        self.note.setVisible(bool(left_out))
        self._body.setCurrentWidget(self.canvas if has_points else self.empty)
        self.setAccessibleName(self._words(prepared))
        self.canvas.setAccessibleName(self.accessibleName())

    def _words(self, prepared: Sequence[PreparedCurve]) -> str:
        newest = [
            f"{printable(curve.series.label)} {number(value)} at {place_text(float(curve.x[-1]), self._axis)}"
            for curve in prepared
            if (value := curve.newest()) is not None
        ]
        return f"Chart {printable(self._title)}: {', '.join(newest) or 'no values yet'}"

    def _repaint(self) -> None:
        self.canvas.paint_in_theme()
        self.legend.update()
        self.update()

    def _toggle(self, key: str, is_shown: bool) -> None:
        (self.canvas.hidden.discard if is_shown else self.canvas.hidden.add)(key)
        self.canvas.draw()

    def _range_chosen(self) -> None:
        self._show_following()
        if self.canvas.chosen_x:
            self._zoom_timer.start()

    def _report_zoom(self) -> None:
        if self.canvas.chosen_x:
            self.zoomed.emit(*self.canvas.chosen_x)

    def _show_following(self) -> None:
        self.follow_button.setVisible(not self.canvas.is_following)

    def _point(self, x: float | None) -> None:
        readings = [(curve, curve.at(x)) for curve in self.canvas.shown()] if x is not None else []
        found = [reading.x for _, reading in readings if reading]
        if x is None or not found:
            self.card.hide()
            self.canvas.point_at(None)
            return
        nearest = min(found, key=lambda place: abs(place - x))
        self.canvas.point_at(nearest)
        rows = [
            HoverRow(
                curve_pen(self._context.theme.colours, curve.series.colour, curve.series.is_faded),
                printable(curve.series.label),
                "-" if reading is None else _reading_text(reading.value, reading.smoothed, curve.is_smoothed),
            )
            for curve, reading in readings
        ]
        self.card.show_rows(place_text(nearest, self._axis), rows, self.mapFromGlobal(self.cursor().pos()))

    def _open_menu_below(self) -> None:
        self._open_menu(self.menu_button.mapToGlobal(QPoint(0, self.menu_button.height())))

    def _open_menu(self, place: QPoint) -> None:
        open_menu(self, self._context, place)


def _reading_text(value: float, smoothed: float, is_smoothed: bool) -> str:
    return f"{number(smoothed)}  ({number(value)})" if is_smoothed else number(value)
