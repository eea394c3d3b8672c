"""The curves of a run beside its live frame."""

import json
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QSplitter, QStackedWidget, QVBoxLayout

from mosaic.gui.charts.chart import Chart
from mosaic.gui.frames.tab import FramesTab
from mosaic.gui.run_tab.curve_bar import CurveBar
from mosaic.gui.run_tab.curve_grid import CurveGrid
from mosaic.gui.run_tab.section import Section
from mosaic.gui.widgets.empty import EmptyState
from mosaic.gui.widgets.problem import Problem
from mosaic.present.axes import choose
from mosaic.present.curves import CurveStore
from mosaic.present.metric_choice import first_metrics
from mosaic.present.metric_order import in_order

if TYPE_CHECKING:
    from mosaic.client.events import Curve
    from mosaic.gui.context import Context
    from mosaic.gui.hub.feed import FeedBatch
    from mosaic.gui.run_tab.source import RunSource

DRAW_MS = 200
POINTS = 2000
FRAME = "curves/frame"


class CurvesSection(Section):
    needs_events: ClassVar[bool] = True

    def __init__(self, context: "Context", source: "RunSource") -> None:
        super().__init__(context, source)
        self.store = CurveStore()
        self._known: set[str] = set()
        self._stale: set[str] = set()
        self._pinned = self._remembered()
        self.bar = CurveBar(context.memory)
        self.grid = CurveGrid(context, self._connect_chart)
        self.problem = Problem()
        self.empty = EmptyState("No curves yet", "They appear with the first episode or metric that the run reports.")
        self.pages = QStackedWidget()
        self.split = QSplitter(Qt.Orientation.Horizontal)
        self.frames: FramesTab | None = None
        self._timer = QTimer(self, interval=DRAW_MS, singleShot=True)
        self._timer.timeout.connect(self._draw)
        self._lay_out()
        self._connect()

    @property
    def names(self) -> list[str]:
        """The metrics that have a chart, in order."""
        if self._pinned:
            return [name for name in self._pinned if name in self._known]
        return first_metrics(self._known)

    def enter(self) -> None:
        run = self.source.run
        is_live = run is None or not run.state.is_over
        self.bar.frame.setChecked(is_live and bool(self.context.memory.value(FRAME, True)))
        self._show_frame(self.bar.frame.isChecked())
        self._look_for_names()

    def leave(self) -> None:
        self._timer.stop()

    # Which metrics

    def _look_for_names(self) -> None:
        self.context.hub.ask(
            lambda client: client.curve_names(self.source.run_id), self._take_names, self._fail, owner=self
        )

    def _take_names(self, names: list[str]) -> None:
        self.problem.clear()
        if not self._known.issuperset(names):
            self._known.update(names)
            self._show_names()

    def _notice_new_names(self) -> None:
        """A live run may report a metric for the first time."""
        run = self.source.run
        if run and self.isVisible():
            summary = run.summary
            names = set(summary.last_values) | ({"episode/return", "episode/length"} if summary.episodes else set())
            self._take_names([name for name in names if name not in self._known])

    def _show_names(self) -> None:
        names = self.names
        self.bar.picker.set_names(in_order(self._known), names)
        self.grid.set_names(names)
        self.pages.setCurrentWidget(self.grid if names else self.empty)
        for name in self.store.names(self.source.run_id):
            if name not in names:
                self.store.close(self.source.run_id, name)
        for name in names:
            if self.store.open(self.source.run_id, name):
                self._load(name)

    def _pin(self, names: list[str]) -> None:
        self._pinned = list(names)
        self.context.memory.remember(self._memory_key, json.dumps(self._pinned))
        self._show_names()

    @property
    def _memory_key(self) -> str:
        run = self.source.run
        return f"curves/metrics/{run.worker_name if run else ''}"

    def _remembered(self) -> list[str]:
        try:
            names = json.loads(str(self.context.memory.value(self._memory_key, "[]")))
        except ValueError:
            return []
        return [str(name) for name in names] if isinstance(names, list) else []

    # Their values

    def _reload(self) -> None:
        """A feed has begun: there may be a gap between what is here and its first event."""
        if not self.isVisible():
            return  # it is for another section; this one reads again when it is entered
        for name in self.names:
            self.store.open(self.source.run_id, name)
            self._load(name)

    def _load(self, name: str) -> None:
        self.context.hub.ask(
            lambda client: client.query_curve(self.source.run_id, name, POINTS), self._take, self._fail, owner=self
        )

    def _take(self, curve: "Curve") -> None:
        self.store.load(self.source.run_id, curve)
        self._set_stale({curve.name})

    def _receive(self, batch: "FeedBatch") -> None:
        if self.isVisible():
            self._set_stale(self.store.add(self.source.run_id, batch.events))

    def _set_stale(self, names: set[str]) -> None:
        self._stale |= names
        if self._stale and not self._timer.isActive():
            self._timer.start()

    def _draw(self) -> None:
        stale, self._stale = self._stale, set()
        for number, (name, chart) in enumerate(self.grid.charts.items()):
            if name in stale:
                self._draw_one(name, chart, number)

    def _draw_one(self, name: str, chart: Chart, number: int) -> None:
        axis = choose(self.bar.x_axis, self.store.axes(self.source.run_id, name))
        chart.set_options(self.bar.smoothing, self.bar.log_y, axis)
        chart.set_series([self.store.series(self.source.run_id, name, axis, label=name, colour=number)])

    # Zoom

    def _connect_chart(self, name: str, chart: Chart) -> None:
        chart.setObjectName(f"curves.chart.{name}")
        chart.zoomed.connect(lambda left, right: self._zoom(name, left, right))
        chart.followed.connect(lambda: self._follow(name))

    def _zoom(self, name: str, left: float, right: float) -> None:
        axis = choose(self.bar.x_axis, self.store.axes(self.source.run_id, name))
        first, last = self.store.detail_range(self.source.run_id, name, axis, left, right)

        def show(curve: "Curve") -> None:
            if (chart := self.grid.charts.get(name)) and not chart.is_following:
                self.store.show_detail(self.source.run_id, name, curve)
                self._set_stale({name})

        self.context.hub.ask(
            lambda client: client.query_curve(self.source.run_id, name, POINTS, last, first),
            show,
            self._fail,
            owner=self,
        )

    def _follow(self, name: str) -> None:
        self.store.show_detail(self.source.run_id, name, None)
        self._set_stale({name})

    def _follow_all(self) -> None:
        for chart in self.grid.charts.values():
            if not chart.is_following:
                chart.follow()

    def _fail(self, error: Exception) -> None:
        if not self.source.is_deleted:
            self.problem.show_problem("The curves of this run cannot be read.", str(error))

    # Frame

    def _choose_frame(self, is_shown: bool) -> None:
        run = self.source.run
        if run and not run.state.is_over:
            self.context.memory.remember(FRAME, is_shown)
        self._show_frame(is_shown)

    def _show_frame(self, is_shown: bool) -> None:
        if is_shown and self.frames is None:
            self.frames = FramesTab(self.context, self.source.run_id)
            self.split.addWidget(self.frames)
            self.split.setCollapsible(1, False)
            sizes = self.context.memory.value("curves/split", "")
            left, _, right = str(sizes).partition(" ")
            self.split.setSizes([int(left), int(right)] if left.isdigit() and right.isdigit() else [760, 440])
        if self.frames:
            self.frames.setVisible(is_shown)

    def _remember_split(self) -> None:
        self.context.memory.remember("curves/split", " ".join(map(str, self.split.sizes())))

    def _connect(self) -> None:
        self.bar.changed.connect(lambda: self._set_stale(set(self.grid.charts)))
        self.bar.follow_asked.connect(self._follow_all)
        self.bar.frame_toggled.connect(self._choose_frame)
        self.bar.picker.chosen.connect(self._pin)
        self.bar.picker.reset.connect(lambda: self._pin([]))
        self.split.splitterMoved.connect(self._remember_split)
        self.source.changed.connect(self._notice_new_names)
        self.source.followed.connect(self._reload)
        self.source.received.connect(self._receive)

    def _lay_out(self) -> None:
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self.grid)
        self.split.addWidget(self.pages)
        self.split.setCollapsible(0, False)
        self.pages.setContentsMargins(0, 0, 8, 0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 8, 16, 8)
        layout.setSpacing(8)
        layout.addWidget(self.bar)
        layout.addWidget(self.problem)
        layout.addWidget(self.split, 1)
