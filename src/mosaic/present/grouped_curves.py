"""The groups of the Compare page: how runs can be divided, their curves with bands, and their statistics."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mosaic.model.errors import MosaicError
from mosaic.model.states import RunState
from mosaic.present.compared_groups import FACTS, PLAIN, SEED, RunGroup, divide_runs
from mosaic.present.compared_runs import RUN, Chosen
from mosaic.present.compared_samples import NOT_FINITE, Sample, SampleGroup, local_value, summary_value, why_left_out
from mosaic.present.compared_value import Reading, better_for, reading_for
from mosaic.present.curves import CurveStore, Series
from mosaic.present.group_comparison import GroupComparison, Options, compare_groups
from mosaic.present.settings_diff import compare_settings
from mosaic.stats.bands import Band, band_of
from mosaic.stats.traces import POINTS, Trace, common_range, grid_for

if TYPE_CHECKING:
    from mosaic.client import Run

EACH, ALIKE = "", "equal settings"
MOST_CHOICES = 25

Settings = Mapping[str, "Mapping[str, Any] | None"]


def group_choices(runs: "Sequence[Run]", settings: Settings) -> list[tuple[str, str]]:
    """(key, title) of every way to divide these runs: facts and settings in which they differ."""
    facts = [key for key in (*PLAIN, "env_id") if len({FACTS[key](run) for run in runs}) > 1]
    rows = compare_settings([settings.get(run.run_id) for run in runs])
    keys = [row.key for row in rows if row.differs and row.key.rpartition(".")[2] != SEED and row.key not in facts]
    every = [(key, key.rpartition(".")[2].replace("_", " ")) for key in (*facts, *keys)]
    return [(EACH, "each run"), (ALIKE, "equal settings"), *every[:MOST_CHOICES]]


class GroupedCurves:
    """`arrange` divides the runs; `series` and `comparison` then read the curves that are open in the store."""

    def __init__(self, store: CurveStore) -> None:
        self._store = store
        self.groups: list[RunGroup] = []
        self._bands: dict[str, tuple[Any, list[Series]]] = {}
        self._compared: tuple[Any, GroupComparison | None] = (None, None)
        self.problem = ""  # why there are no statistics

    @property
    def is_grouped(self) -> bool:
        return bool(self.groups)

    def colours(self) -> dict[str, int]:
        """The number of each run's group; empty without groups."""
        return {run.run_id: index for index, group in enumerate(self.groups) for run in group.runs}

    def arrange(self, runs: "Sequence[Run]", settings: Settings, by: str) -> None:
        """Without groups if `by` is EACH. A setting that none of them has any more is like ALIKE."""
        known = [replace(run, settings=dict(settings.get(run.run_id) or {})) for run in runs]
        chosen = [Chosen("", RUN, tuple(known))]
        try:
            keys = [] if by == ALIKE else [by]
            self.groups = divide_runs(chosen, keys, lambda run: run) if by != EACH and known else []
        except MosaicError:
            self.groups = divide_runs(chosen, [], lambda run: run)

    def series(self, name: str, axis: str) -> list[Series]:
        """A curve with its band for each group, up to the end of the shortest run. Failed runs are left out."""
        versions = [
            [(run.run_id, self._store.version(run.run_id, name)) for run in group.runs] for group in self.groups
        ]
        drawn = [_is_drawn(run) for group in self.groups for run in group.runs]
        key = (axis, [group.label for group in self.groups], versions, drawn)
        if name not in self._bands or self._bands[name][0] != key:
            self._bands[name] = key, self._aggregate(name, axis)
        return self._bands[name][1]

    def comparison(self, name: str) -> GroupComparison | None:
        """The statistics of finished runs; None if there is nothing to say, which `problem` explains."""
        reading = reading_for(name)
        groups = [self._samples(group, name, reading) for group in self.groups]
        key = (name, *((g.label, *((s.run.run_id, s.value, s.left_out) for s in g.samples)) for g in groups))
        if self._compared[0] != key:
            self._compared = key, self._compare(groups, name, reading)
        return self._compared[1]

    def _compare(self, groups: list[SampleGroup], name: str, reading: Reading) -> GroupComparison | None:
        self.problem = ""
        try:
            return compare_groups(groups, name, reading, Options(better=better_for(name)))
        except MosaicError as error:
            self.problem = str(error).partition(" To use what")[0].partition(" Compare those of one")[0]
            return None

    def _samples(self, group: RunGroup, name: str, reading: Reading) -> SampleGroup:
        return SampleGroup(group.label, tuple(self._sample(run, name, reading) for run in group.runs))

    def _sample(self, run: "Run", name: str, reading: Reading) -> Sample:
        if why := why_left_out(run, with_unfinished=False):
            return Sample(run, left_out=why)
        columns = self._store.columns(run.run_id, name, "")
        trace = Trace.of(*columns)
        if not len(trace):
            return Sample(run, left_out=NOT_FINITE if len(columns[0]) else "no values of this metric")
        known = summary_value(run, name, reading)
        value = known if known is not None else local_value(trace, reading)
        left_out = NOT_FINITE if value is not None and not math.isfinite(value) else ""
        axis = self._store.step_axis(run.run_id, name)
        return Sample(run, None if left_out else value, trace, axis, left_out, len(trace) < len(columns[0]))

    def _trace(self, run_id: str, name: str, axis: str) -> Trace:
        return Trace.of(*self._store.columns(run_id, name, axis))

    def _aggregate(self, name: str, axis: str) -> list[Series]:
        drawn = [[run for run in group.runs if _is_drawn(run)] for group in self.groups]
        traces = [[trace for run in runs if len(trace := self._trace(run.run_id, name, axis))] for runs in drawn]
        every = [trace for each in traces for trace in each]
        shared = common_range(every)
        if shared is None:
            return []
        grid = grid_for(every, *shared, POINTS)
        return [
            _series(group.label, name, band_of(each, grid), index)
            for index, (group, each) in enumerate(zip(self.groups, traces, strict=True))
            if each
        ]


def _is_drawn(run: "Run") -> bool:
    """Whether it finished or may still: a run that failed would end all curves where it failed."""
    return run.state is RunState.TERMINATED or not run.state.is_over


def _series(label: str, name: str, band: Band, colour: int) -> Series:
    return Series(f"group {label}/{name}", label, band.step, band.middle, band.low, band.high, colour)
