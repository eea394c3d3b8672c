"""The charts of the Compare page: one per metric, in two columns where there is room."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QScrollArea, QWidget

from mosaic.gui.charts.chart import Chart

if TYPE_CHECKING:
    from mosaic.gui.context import Context

CHART_HEIGHT = 300
COLUMN_WIDTH = 460


class ChartGrid(QScrollArea):
    zoomed = Signal(str, float, float)  # metric, range of x
    followed = Signal(str)

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self._context = context
        self.charts: dict[str, Chart] = {}
        self.content = QWidget()
        self._grid = QGridLayout(self.content)
        self._grid.setContentsMargins(0, 0, 8, 0)
        self._grid.setSpacing(8)
        self._columns = 0
        self.setWidgetResizable(True)
        self.setWidget(self.content)
        self.setMinimumHeight(200)

    def show_metrics(self, names: Sequence[str]) -> None:
        """One chart per name. Charts that stay keep their zoom."""
        if list(self.charts) == list(names):
            return
        for name in [each for each in self.charts if each not in names]:
            self.charts.pop(name).deleteLater()
        self.charts = {name: self.charts.get(name) or self._chart(name) for name in names}
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._columns != self._wanted_columns():
            self._arrange()

    def _chart(self, name: str) -> Chart:
        chart = Chart(self._context, name)
        chart.setMinimumHeight(CHART_HEIGHT)
        chart.zoomed.connect(lambda left, right: self.zoomed.emit(name, left, right))
        chart.followed.connect(lambda: self.followed.emit(name))
        return chart

    def _wanted_columns(self) -> int:
        return max(1, min(len(self.charts), self.viewport().width() // COLUMN_WIDTH))

    def _arrange(self) -> None:
        self._columns = self._wanted_columns()
        for column in range(max(self._columns, self._grid.columnCount())):
            self._grid.setColumnStretch(column, 1 if column < self._columns else 0)
        for index, chart in enumerate(self.charts.values()):
            self._grid.addWidget(chart, index // self._columns, index % self._columns)
