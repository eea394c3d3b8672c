"""What drawing curves costs, in CPU time: python benchmarks/gui_charts.py (in .venv-gui, offscreen).

Four curves of 100,000 points in a chart, against bare pyqtgraph with its own downsampling in the same run, and one
chart with 10 million points.
"""

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QApplication

from mosaic.gui.charts.chart import Chart
from mosaic.gui.context import Context
from mosaic.gui.memory import Memory
from mosaic.gui.theme import Theme
from mosaic.present.curves import Series

POINTS, CURVES, MANY, ROUNDS = 100_000, 4, 10_000_000, 15
SIZE = (800, 400)


def main() -> None:
    app = QApplication([])
    with TemporaryDirectory() as folder:
        chart = _chart(Path(folder))
        data = [_series(CURVES, POINTS, turn) for turn in range(2)]
        ours = _cpu_ms(app, lambda turn: _show(chart, data[turn % 2]))
        bare = _bare(app, data)
        many = _series(1, MANY, 0)
        long = _cpu_ms(app, lambda turn: _show(chart, many))
    print(f"four curves of {POINTS:,} points, one refresh with painting, CPU ms")
    print(f"  Chart, smoothed with raw lines   {ours:7.1f}")
    print(f"  pyqtgraph, auto downsampling     {bare:7.1f}")
    print(f"  ratio                            {ours / bare:7.2f}")
    print(f"one curve of {MANY:,} points        {long:7.1f}")


def _chart(folder: Path) -> Chart:
    chart = Chart(Context(None, Memory(folder / "gui.ini"), Theme(), None, "", None, None), "loss")  # type: ignore[arg-type]
    chart.resize(*SIZE)
    chart.set_options(smoothing=0.9)
    chart.show()
    return chart


def _show(chart: Chart, series: list[Series]) -> None:
    chart.set_series(series)
    chart.refresh()


def _series(count: int, points: int, seed: int) -> list[Series]:
    noise = np.random.default_rng(seed).normal(size=(count, points))
    x = np.arange(points, dtype=float)
    return [Series(str(index), str(index), x, noise[index] + index * 3, colour=index) for index in range(count)]


def _bare(app: QApplication, data: list[list[Series]]) -> float:
    plot = pg.PlotWidget()
    plot.setDownsampling(auto=True, mode="peak")
    plot.setClipToView(True)
    plot.resize(*SIZE)
    items = [plot.plot(pen=pg.mkPen(index, width=1)) for index in range(CURVES)]
    plot.show()

    def refresh(turn: int) -> None:
        for item, series in zip(items, data[turn % 2], strict=True):
            item.setData(series.x, series.y)

    return _cpu_ms(app, refresh)


def _cpu_ms(app: QApplication, refresh: Callable[[int], None]) -> float:
    """The median of the CPU time of one refresh and one painting."""
    costs = []
    for turn in range(ROUNDS):
        start = time.process_time()
        refresh(turn)
        app.processEvents()  # paints
        costs.append((time.process_time() - start) * 1000)
    return statistics.median(costs[2:])


if __name__ == "__main__":
    main()
