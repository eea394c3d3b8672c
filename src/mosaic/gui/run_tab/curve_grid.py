"""Charts in as many columns as fit, one per metric."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QScrollArea, QWidget

from mosaic.gui.charts.chart import Chart

if TYPE_CHECKING:
    from mosaic.gui.context import Context

COLUMN_PX = 250  # the least width of a chart
LOW_PX, HIGH_PX = 176, 236  # the least height of a chart in a low panel, and in a tab


class CurveGrid(QScrollArea):
    """`connect_chart` is called once for every new chart."""

    def __init__(self, context: "Context", connect_chart: "Callable[[str, Chart], None]") -> None:
        super().__init__(widgetResizable=True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setObjectName("curves.grid")
        self._context = context
        self._connect_chart = connect_chart
        self._places: tuple[object, ...] = ()
        self.charts: dict[str, Chart] = {}
        content = QWidget()
        self._grid = QGridLayout(content)
        self._grid.setContentsMargins(0, 0, 8, 0)
        self._grid.setSpacing(8)
        self.setWidget(content)

    def set_names(self, names: Sequence[str]) -> None:
        """One chart for each name, in this order. Charts that stay keep their zoom."""
        for name in [known for known in self.charts if known not in names]:
            gone = self.charts.pop(name)
            gone.hide()
            gone.deleteLater()
        for name in names:
            if name not in self.charts:
                self.charts[name] = Chart(self._context, name)
                self._connect_chart(name, self.charts[name])
        self.charts = {name: self.charts[name] for name in names}
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        columns = columns_for(len(self.charts), self.viewport().width() // COLUMN_PX)
        least = LOW_PX if self.viewport().height() < 2 * HIGH_PX else HIGH_PX
        places = (columns, least, *self.charts)
        if places == self._places:
            return
        self._places = places
        while self._grid.count():
            self._grid.takeAt(0)
        for number in range(self._grid.columnCount()):
            self._grid.setColumnStretch(number, 0)
        for number in range(self._grid.rowCount()):
            self._grid.setRowStretch(number, 0)
        for number, chart in enumerate(self.charts.values()):
            chart.setMinimumHeight(least)
            self._grid.addWidget(chart, number // columns, number % columns)
            self._grid.setColumnStretch(number % columns, 1)
            self._grid.setRowStretch(number // columns, 1)


def columns_for(charts: int, most: int) -> int:
    """As many columns as fit, but no more than full rows need: six charts are two rows of three, not four and two."""
    rows = -(-charts // max(1, most))
    return -(-charts // rows) if rows else 1
