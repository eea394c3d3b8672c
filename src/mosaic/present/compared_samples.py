"""What is known of each compared run: its value, its curve, and why it does not count if it does not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mosaic.client.joined import joined_curve
from mosaic.model.errors import MosaicError
from mosaic.model.experiment import point_key
from mosaic.model.states import RunState
from mosaic.present.compared_groups import RunGroup
from mosaic.present.compared_value import AREA, EVAL_RETURN, EVALUATION, NEWEST, RETURN, SHARE, Reading
from mosaic.present.metric_order import in_order
from mosaic.present.text import printable
from mosaic.stats.traces import POINTS, Trace, common_range

if TYPE_CHECKING:
    from mosaic.client import Run, TrainerClient
    from mosaic.client.events import Curve

MOST_NAMES = 12  # metrics in an error
DETAIL = 10_000  # points of a query that must not merge values
NOT_FINITE = "its value is not a finite number"
STEPS = "steps"


@dataclass(frozen=True)
class Sample:
    """One run of a group."""

    run: "Run"
    value: float | None = None
    trace: Trace | None = None
    axis: str = STEPS  # what the steps of its curve count
    left_out: str = ""  # why it does not count; empty: it counts
    has_gaps: bool = False  # some of its values are not finite, and the others count without them

    @property
    def values(self) -> int:
        """How many values its curve has."""
        return int(np.sum(self.trace.count)) if self.trace else 0

    @property
    def title(self) -> str:
        """`seed 3`, or its name."""
        seed = self.run.seed if self.run.seed is not None else self.run.axes.get("seed")
        return f"seed {seed}" if seed is not None else printable(self.run.name) or self.run.run_id


@dataclass(frozen=True)
class SampleGroup:
    label: str
    samples: tuple[Sample, ...]

    @property
    def counted(self) -> list[Sample]:
        return [sample for sample in self.samples if not sample.left_out]


def without_repeats(group: SampleGroup) -> SampleGroup:
    """A run that only repeats another one, its seed and its value, says nothing new: it does not count."""
    seen: set[tuple[object, ...]] = set()
    return SampleGroup(group.label, tuple(_unless_repeated(sample, seen) for sample in group.samples))


def _unless_repeated(sample: Sample, seen: set[tuple[object, ...]]) -> Sample:
    run = sample.run
    mark = (sample.title, sample.value, run.worker_name, run.algo, run.env_id, point_key(run.axes))
    if sample.left_out or not sample.title.startswith("seed ") or mark not in seen:
        seen.add(mark)
        return sample
    return replace(sample, left_out="it repeats another run: the same seed, the same value")


def why_left_out(run: "Run", with_unfinished: bool) -> str:
    """A run that did not reach its end says little about its settings, so it does not count unless that is wanted."""
    if run.state is RunState.TERMINATED or (with_unfinished and run.summary.events):
        return ""
    if not run.state.is_over:
        return f"not over yet ({run.state})" if run.summary.events else f"no values yet ({run.state})"
    reason = run.reason.strip().partition("\n")[0]
    return printable(f"{run.state}: {reason}" if reason else str(run.state)).rstrip(".")


def common_metric(groups: Sequence[RunGroup], names_of: "Callable[[Run], Sequence[str]]", wanted: str = "") -> str:
    """The metric that is compared: the wanted one, or the return that every group has. `groups`: of runs that count."""
    if not groups:
        return wanted or RETURN  # nothing counts, which the comparison explains
    if not wanted:
        runs = [run for group in groups for run in group.runs]
        if runs and all(run.summary.eval_episodes and run.area != "evals" for run in runs):
            return EVAL_RETURN
        if runs and all(run.summary.training_episodes or run.area == "evals" for run in runs):
            return RETURN
    known = {group.label: {name for run in group.runs for name in names_of(run)} for group in groups}
    shared = set.intersection(*known.values())
    if wanted in shared:
        return wanted
    returns = [name for name in in_order(shared) if _is_return(name)]
    if not wanted and returns:
        return returns[0]
    raise MosaicError(_no_common(known, wanted))


def names_reader(client: "TrainerClient") -> "Callable[[Run], Sequence[str]]":
    """Asks for the metrics of a run. One whose telemetry is damaged has none; its sample says why."""

    def names_of(run: "Run") -> Sequence[str]:
        try:
            return client.curve_names(run.run_id)
        except MosaicError:
            return ()

    return names_of


def _is_return(name: str) -> bool:
    return any(word in name.lower() for word in ("return", "ep_rew", "score", "episode_reward", "episodic_reward"))


def _no_common(known: dict[str, set[str]], wanted: str) -> str:
    lists = [f"{label} has {_listed(names)}" for label, names in known.items()]
    what = f"the metric '{printable(wanted)}'" if wanted else "a return"
    lacking = [label for label, names in known.items() if wanted not in names]
    who = f"{', '.join(lacking)} {'does' if len(lacking) == 1 else 'do'} not have" if wanted else "they do not all have"
    shared = set.intersection(*known.values())
    advice = "Choose a common one with --metric." if shared else "No metric is common to all of them."
    return f"These groups cannot be compared: {who} {what}. {'; '.join(lists)}. {advice}"


def _listed(names: set[str]) -> str:
    ordered = in_order(names)
    more = f" and {len(ordered) - MOST_NAMES} more" if len(ordered) > MOST_NAMES else ""
    return printable(", ".join(ordered[:MOST_NAMES])) + more if ordered else "no metrics"


class SampleReader:
    """Reads the samples of runs through the daemon."""

    def __init__(self, client: "TrainerClient", metric: str, reading: Reading, points: int = POINTS) -> None:
        self._client = client
        self._metric = metric
        self._reading = reading
        self._points = points

    def read(self, group: RunGroup, with_unfinished: bool = False) -> SampleGroup:
        return SampleGroup(group.label, tuple(self._sample(run, with_unfinished) for run in group.runs))

    def _sample(self, run: "Run", with_unfinished: bool) -> Sample:
        if why := why_left_out(run, with_unfinished):
            return Sample(run, left_out=why)
        try:
            curve = self._curve(run)
        except MosaicError as error:
            return Sample(run, left_out=printable(str(error)).rstrip("."))
        trace = Trace.of(curve.step, curve.mean, curve.count)
        if not len(trace):
            why = NOT_FINITE if curve.step else f"it has no values of {printable(self._metric)}"
            return Sample(run, left_out=why)
        return replace(self._valued(run, trace, curve.axis), has_gaps=len(trace) < len(curve.step))

    def _curve(self, run: "Run") -> "Curve":
        if run.relation == "resume":
            return joined_curve(self._client, run.run_id, self._metric, self._points)
        return self._client.query_curve(run.run_id, self._metric, self._points)

    def _valued(self, run: "Run", trace: Trace, axis: str) -> Sample:
        at_step = self._reading.at_step
        if at_step is not None and trace.step[-1] < at_step:
            return Sample(run, None, trace, axis, f"it ends at step {int(trace.step[-1]):,}, before {at_step:,}")
        if at_step is not None and trace.step[0] > at_step:
            return Sample(run, None, trace, axis, f"it begins at step {int(trace.step[0]):,}, after {at_step:,}")
        value = self._value(run, trace)
        left_out = "" if value is None or np.isfinite(value) else NOT_FINITE
        return Sample(run, None if left_out else value, trace, axis, left_out)

    def _value(self, run: "Run", trace: Trace) -> float | None:
        """None: it is known when all curves are (the area)."""
        reading = self._reading
        if reading.kind == AREA:
            return None
        if (known := summary_value(run, self._metric, reading)) is not None:
            return known
        if reading.kind in (NEWEST, EVALUATION):
            many = int(reading.amount) or run.summary.eval_over or 1
            return self._newest(run, trace, many)
        return last_share(trace, reading)

    def _newest(self, run: "Run", trace: Trace, many: int) -> float:
        at_step = self._reading.at_step
        until = trace if at_step is None else trace.between(-np.inf, at_step)
        if np.all(until.count == 1) and at_step is None:
            return until.newest(many)
        return self._tail(run, until, many).newest(many)

    def _tail(self, run: "Run", trace: Trace, many: int) -> Trace:
        """The end of the curve, with every value a point of its own."""
        behind = np.cumsum(trace.count[::-1])[::-1]  # values from each point to the end
        first = max(0, int(np.searchsorted(-behind, -many, side="right")) - 2)
        # A point's step is that of its last value: the values of the first point begin after the one before.
        from_step = int(trace.step[first])
        curve = self._client.query_curve(run.run_id, self._metric, DETAIL, self._reading.at_step, from_step)
        found = Trace.of(curve.step, curve.mean, curve.count)
        return found if np.sum(found.count) >= min(many, np.sum(trace.count)) else trace


def summary_value(run: "Run", metric: str, reading: Reading) -> float | None:
    """The value as the run's summary has it, exactly; None if it has not."""
    s = run.summary
    if reading.kind == EVALUATION:
        return s.eval_mean
    if reading.kind != NEWEST or metric != RETURN or reading.at_step is not None or run.relation == "resume":
        return None
    return s.mean_return if s.mean_over == min(int(reading.amount), s.training_episodes) else None


def last_share(trace: Trace, reading: Reading) -> float:
    """The mean of the values in the last percents of the steps."""
    end = trace.step[-1] if reading.at_step is None else float(reading.at_step)
    first = end - (end - min(0.0, trace.step[0])) * reading.amount / 100
    inside = trace.between(first, end)
    if not len(inside):
        return float(np.interp(end, trace.step, trace.value))
    return float(np.average(inside.value, weights=inside.count))


def local_value(trace: Trace, reading: Reading) -> float | None:
    """The value as far as these points say; None for the area, which depends on all curves."""
    if reading.kind == AREA:
        return None
    until = trace if reading.at_step is None else trace.between(-np.inf, reading.at_step)
    if not len(until):
        return None
    return last_share(trace, reading) if reading.kind == SHARE else until.newest(int(reading.amount) or 1)


def with_areas(groups: Sequence[SampleGroup], at_step: int | None = None) -> list[SampleGroup]:
    """The area under each curve, over the steps that all of them have."""
    traces = [sample.trace for group in groups for sample in group.counted if sample.trace]
    shared = common_range(traces)
    if shared is None:
        raise MosaicError("The curves of these runs have no steps in common, so their areas cannot be compared.")
    first, last = shared
    last = last if at_step is None else min(last, float(at_step))
    return [
        SampleGroup(group.label, tuple(_with_area(sample, first, last) for sample in group.samples)) for group in groups
    ]


def _with_area(sample: Sample, first: float, last: float) -> Sample:
    if sample.left_out or sample.trace is None:
        return sample
    return replace(sample, value=sample.trace.area(first, last))
