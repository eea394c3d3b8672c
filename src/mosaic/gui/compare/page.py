"""Several runs in one chart per metric, alone or as groups with bands and statistics; the settings that differ."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QMenu, QSplitter, QStackedLayout, QVBoxLayout, QWidget

from mosaic.gui.charts.chart import REFRESH_MS
from mosaic.gui.charts.chart_menu import ask_and_save
from mosaic.gui.charts.picture import FORMATS, save_picture
from mosaic.gui.compare.chart_grid import ChartGrid
from mosaic.gui.compare.curve_options import CurveOptions
from mosaic.gui.compare.curve_source import CurveSource
from mosaic.gui.compare.metric_picker import MOST, MetricPicker
from mosaic.gui.compare.run_chips import RunChips
from mosaic.gui.compare.run_field import RunField
from mosaic.gui.compare.settings_panel import SettingsPanel
from mosaic.gui.compare.statistics_panel import StatisticsPanel
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.empty import EmptyState
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.problem import Problem
from mosaic.present.axes import choose, shared
from mosaic.present.grouped_curves import EACH, GroupedCurves, group_choices
from mosaic.present.metric_choice import first_metrics
from mosaic.present.metric_order import in_order
from mosaic.present.run_labels import distinct_labels

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context
    from mosaic.gui.hub.connection import RunsChange

RUNS, METRICS, BY = "compare/runs", "compare/metrics", "compare/by"
FIRST_METRICS = 4  # shown until the user chooses


class ComparePage(QWidget):
    """Runs that are deleted stay, in grey, until the user removes them."""

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self._context = context
        self._names: dict[str, str] = {}  # the compared runs: id → name
        self._settings: dict[str, Mapping[str, Any] | None] = {}
        self._gone: set[str] = set()
        self._stale: set[str] = set()  # metrics whose charts must be drawn again
        self._timer = QTimer(self, interval=REFRESH_MS, singleShot=True)
        self.source = CurveSource(context.hub, self)
        self.grouped = GroupedCurves(self.source.store)
        self._build()
        self._connect()
        self.set_runs([each for each in context.memory.value(RUNS, "").split(" ") if each])

    def set_runs(self, run_ids: Sequence[str]) -> None:
        for run_id in [each for each in self._names if each not in run_ids]:
            self._drop(run_id)
        for run_id in run_ids:
            self._take(run_id)
        self._runs_changed()

    def run_ids(self) -> list[str]:
        return list(self._names)

    def focus_search(self) -> None:
        self.field.setFocus()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.source.resume(list(self._names), self._metrics())

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.source.pause()

    def _build(self) -> None:
        context = self._context
        self.field = RunField(context.hub)
        self.picker = MetricPicker()
        self.options = CurveOptions(context.memory)
        self.export = button("Export…", self._open_export, name="compare.export", tip="Save all charts as one picture")
        self.chips = RunChips(context.theme)
        self.problem = Problem()
        self.grid = ChartGrid(context)
        self.settings = SettingsPanel(context)
        self.statistics = StatisticsPanel(context)
        self.by = QComboBox()
        self.by.setObjectName("compare.by")
        self.by.setAccessibleName("Group the runs by")
        self._by_label = label("Group by", "muted")
        self.empty = EmptyState(
            "Choose two or more runs.",
            "Their curves are drawn together, with what differs below.",
            "Go to Runs",
            lambda: context.go.show_runs(),
        )
        self._lay_out()

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(16)
        for widget in (self.field, self.picker, self._by_label, self.by, self.options):
            bar.addWidget(widget)
        bar.addStretch(1)
        bar.addWidget(self.export)
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._splitter.addWidget(self.grid)
        self._splitter.addWidget(self.statistics)
        self._splitter.addWidget(self.settings)
        self._splitter.setStretchFactor(0, 3)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setStretchFactor(2, 1)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setSizes([3000, 1200, 1000])
        self.statistics.hide()
        body = QWidget()
        self._stack = QStackedLayout(body)
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self._splitter)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.setSpacing(8)
        layout.addLayout(bar)
        layout.addWidget(self.chips)
        layout.addWidget(self.problem)
        layout.addWidget(body, 1)

    def _connect(self) -> None:
        self.field.picked.connect(lambda run_id: self.set_runs([*self._names, run_id]))
        self.field.picked_many.connect(lambda run_ids: self.set_runs([*self._names, *run_ids]))
        self.by.activated.connect(self._choose_groups)
        self.chips.removed.connect(lambda run_id: self.set_runs([each for each in self._names if each != run_id]))
        self.picker.chosen.connect(self._choose_metrics)
        self.options.changed.connect(self._draw_all)
        self.source.changed.connect(self._ask_draw)
        self._timer.timeout.connect(self._draw_stale)
        self.source.names_changed.connect(self._show_metrics)
        self.source.failed.connect(self._show_failure)
        self.grid.zoomed.connect(self._zoom)
        self.grid.followed.connect(lambda name: self.source.unzoom(list(self._names), name))
        self._context.hub.runs_changed.connect(self._hub_changed)
        self._context.theme.changed.connect(self._show_chips)

    def _take(self, run_id: str) -> None:
        run = self._context.hub.runs.get(run_id)
        self._names[run_id] = run.name if run else self._names.get(run_id, "")
        if run and run_id not in self._settings:
            self._settings[run_id] = None
            self._context.hub.ask(
                lambda client: client.get_run(run_id), self._take_settings, self._settings_failed, owner=self
            )

    def _drop(self, run_id: str) -> None:
        self._names.pop(run_id, None)
        self._settings.pop(run_id, None)
        self._gone.discard(run_id)
        self.source.forget(run_id)

    def _take_settings(self, run: "Run") -> None:
        if run.run_id in self._names:
            self._settings[run.run_id] = run.settings
            self._show_settings()
            self._arrange()

    def _settings_failed(self, error: Exception) -> None:
        self.problem.show_problem(str(error), "")

    def _show_failure(self, run_id: str, why: str) -> None:
        # A run that was deleted needs no more words, and a lost daemon is told by the status line.
        if run_id in self._context.hub.runs and self._context.hub.connection.state == "ok":
            self.problem.show_problem(f"{self._labels().get(run_id, run_id)}: {why}", run_id)

    def _runs_changed(self) -> None:
        self._context.memory.remember(RUNS, " ".join(self._names))
        self.problem.clear()
        self._stack.setCurrentIndex(1 if self._names else 0)
        self._show_chips()
        self._show_settings()
        self._arrange()
        self._show_metrics()

    def _choose_groups(self) -> None:
        self._context.memory.remember(BY, self.by.currentData() or EACH)
        self._arrange()
        self._draw_all()

    def _arrange(self) -> None:
        """Divide the runs into groups, as far as their settings are known."""
        runs = [run for run_id in self._names if (run := self._context.hub.runs.get(run_id))]
        self._offer(group_choices(runs, self._settings))
        self.grouped.arrange(runs, self._settings, self.by.currentData())
        self.statistics.setVisible(self.grouped.is_grouped)
        self.options.allow_smoothing(not self.grouped.is_grouped)
        self._show_chips()
        for name in self.grid.charts:
            self._ask_draw(name)

    def _offer(self, choices: Sequence[tuple[str, str]]) -> None:
        """The ways to group, with the remembered one chosen. An open list is left alone if nothing is new."""
        if [self.by.itemData(index) for index in range(self.by.count())] == [key for key, _ in choices]:
            return
        self.by.clear()
        for key, title in choices:
            self.by.addItem(title, key)
        self.by.setCurrentIndex(max(0, self.by.findData(self._context.memory.value(BY, EACH))))

    def _labels(self) -> dict[str, str]:
        labels = distinct_labels(self._names)
        return {run_id: f"{text} (deleted)" if run_id in self._gone else text for run_id, text in labels.items()}

    def _show_chips(self) -> None:
        self.chips.show_runs(self._labels(), self._gone, self.grouped.colours())
        for widget in (self.chips, self.picker, self._by_label, self.by, self.options, self.export):
            widget.setVisible(bool(self._names))

    def _show_settings(self) -> None:
        self.settings.show_settings({each: self._settings.get(each) for each in self._names}, self._labels())

    def _hub_changed(self, change: "RunsChange") -> None:
        runs = self._context.hub.runs
        known = {run_id for run_id in self._names if run_id in runs}
        gone = {each for each in self._names if each not in runs and (each in change.deleted or change.is_whole)}
        is_news = gone - self._gone or any(run_id not in self._settings for run_id in known)
        if is_news:
            self._gone |= gone
            self.set_runs(list(self._names))
        elif self.isVisible():
            if self.grouped.is_grouped and any(run.run_id in self._names for run in change.runs):
                self._arrange()
            self.source.show(list(self._names), self._metrics())

    def _shared_metrics(self) -> list[str]:
        """The metrics that every run with values has."""
        sets = [set(names) for run_id in self._names if (names := self.source.names.get(run_id))]
        return in_order(set.intersection(*sets)) if sets else []

    def _metrics(self) -> list[str]:
        possible = self._shared_metrics()
        remembered = [each for each in self._context.memory.value(METRICS, "").split("\n") if each in possible]
        return remembered[:MOST] or first_metrics(possible, FIRST_METRICS)

    def _choose_metrics(self, names: list[str]) -> None:
        self._context.memory.remember(METRICS, "\n".join(names))
        self.source.show(list(self._names), self._metrics())
        self.grid.show_metrics(self._metrics())
        self._draw_all()

    def _show_metrics(self) -> None:
        metrics = self._metrics()
        self.picker.set_names(self._shared_metrics(), metrics)
        self.grid.show_metrics(metrics)
        if self.isVisible():
            self.source.show(list(self._names), metrics)
        self._draw_all()

    def _ask_draw(self, name: str) -> None:
        """Draw this metric soon. Batches of twelve live runs arrive far more often than a chart can be drawn."""
        self._stale.add(name)
        if not self._timer.isActive():
            self._timer.start()

    def _draw_stale(self) -> None:
        self.problem.clear()  # the daemon answers
        stale, self._stale = self._stale, set()
        for name in stale:
            self._draw(name)

    def _draw_all(self) -> None:
        for name in self.grid.charts:
            self._draw(name)

    def _draw(self, name: str) -> None:
        chart = self.grid.charts.get(name)
        if chart is None:
            return
        axis = self._axis(name)
        # A band belongs to the average as it is; smoothing would move one away from the other.
        smoothing = 0.0 if self.grouped.is_grouped else self.options.smoothing
        chart.set_options(smoothing, self.options.is_log, axis)
        if self.grouped.is_grouped:
            chart.set_series(self.grouped.series(name, axis))
            self._show_statistics(name)
            return
        chart.set_series(
            [
                self.source.store.series(run_id, name, axis, label, index, run_id in self._gone)
                for index, (run_id, label) in enumerate(self._labels().items())
            ]
        )

    def _show_statistics(self, name: str) -> None:
        """Those of the first chart's metric."""
        if name == next(iter(self.grid.charts)):
            self.statistics.show_comparison(self.grouped.comparison(name), self.grouped.problem)

    def _axis(self, name: str) -> str:
        """The chosen axis, or one that all these curves have."""
        store = self.source.store
        known = [axes for run_id in self._names if (axes := store.axes(run_id, name))]
        return choose(self.options.axis, shared(known))

    def _zoom(self, name: str, left: float, right: float) -> None:
        self.source.zoom(list(self._names), name, self._axis(name), left, right)

    def _open_export(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for ending in FORMATS:
            action = menu.addAction(f"Save all charts as {ending[1:].upper()}…")
            action.triggered.connect(partial(self._ask_export, ending))
        menu.popup(self.export.mapToGlobal(self.export.rect().bottomLeft()))

    def _ask_export(self, ending: str) -> None:
        ask_and_save(self, self._context, "comparison", ending, self.save)

    def save(self, path: Path) -> None:
        """Write all charts as one picture."""
        save_picture(self.grid.content, self._context.theme.colours.ground, path)
