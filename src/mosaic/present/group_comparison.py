"""Groups of runs compared: averages with intervals, a sentence for each pair, aggregated curves, profiles, warnings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from mosaic_sdk.results.finite import finite

from mosaic.model.errors import MosaicError
from mosaic.present.compared_samples import STEPS, Sample, SampleGroup, without_repeats
from mosaic.present.compared_value import Reading
from mosaic.present.comparison_notes import (
    NOTHING,
    Note,
    end_note,
    mixed_words,
    nothing_counts,
    refuse_mixed_steps,
    unit_of,
    warning_notes,
)
from mosaic.present.text import printable
from mosaic.stats.averages import Floats, optimality_gap
from mosaic.stats.bands import BOOTSTRAP, STRATIFIED_POINTS, Band, band_of, stratified_band
from mosaic.stats.difference import Difference, adjust, difference
from mosaic.stats.estimate import Estimate, estimate, estimate_all
from mosaic.stats.profiles import Profile, profile, thresholds_for
from mosaic.stats.scales import Scale, scale_of
from mosaic.stats.traces import POINTS, Trace, common_range, grid_for
from mosaic.stats.wording import HIGHER, sentence

ANY_ENV = ""  # their environment is not known, or makes no difference to the metric


@dataclass(frozen=True)
class Options:
    average: str = "iqm"  # the one that pairs are compared by
    better: str = HIGHER  # "higher", "lower", or "" if that is not known
    band: str = BOOTSTRAP
    is_longest: bool = False  # curves go on where the shortest run ends
    scales: Mapping[str, Scale] | None = None  # compare normalised values; by environment
    points: int = POINTS


@dataclass(frozen=True)
class GroupResult:
    label: str
    samples: tuple[Sample, ...]
    estimates: dict[str, Estimate]  # iqm, mean, median, and optimality_gap if the scale is known; empty without runs
    band: Band | None = None
    profile: Profile | None = None

    @property
    def counted(self) -> list[Sample]:
        return [sample for sample in self.samples if not sample.left_out]

    def to_dict(self) -> dict[str, Any]:
        return {
            "group": self.label,
            "n": len(self.counted),
            "of": len(self.samples),
            **{name: found.to_dict() for name, found in self.estimates.items()},
            "runs": [_run_dict(sample) for sample in self.samples],
            "curve": _band_dict(self.band) if self.band else None,
            "profile": _profile_dict(self.profile) if self.profile else None,
        }


@dataclass(frozen=True)
class Panel:
    """The curves of the groups in one of several environments, as they are: not normalised."""

    env: str
    bands: "list[Band | None]"  # in the order of the groups


@dataclass(frozen=True)
class GroupComparison:
    metric: str
    reading: Reading
    axis: str  # what the steps of the curves count
    options: Options
    unit: str  # "seed" or "run"
    groups: list[GroupResult]
    pairs: list[Difference]
    envs: list[str]
    notes: list[Note] = field(default_factory=list)  # warnings
    curve_note: Note = NOTHING  # where the curves end, or why there are none
    panels: list[Panel] = field(default_factory=list)  # if there are several environments

    @property
    def warnings(self) -> list[str]:
        return [str(note) for note in self.notes]

    @property
    def curve_words(self) -> str:
        return str(self.curve_note)

    @property
    def value_words(self) -> str:
        normalised = ", normalised" if self.options.scales else ""
        return self.reading.words(printable(self.metric), self.axis) + normalised

    def sentences(self) -> list[str]:
        return [sentence(pair, self.options.better, self.unit) for pair in self.pairs]

    def to_dict(self) -> dict[str, Any]:
        """What --json prints. Numbers that are not finite are null."""
        told = self.sentences()
        document: dict[str, Any] = {
            "metric": self.metric,
            "value": self.value_words,
            "axis": self.axis,
            "average": self.options.average,
            "better": self.options.better,
            "environments": self.envs,
            "groups": [group.to_dict() for group in self.groups],
            "comparisons": [{**pair.to_dict(), "sentence": text} for pair, text in zip(self.pairs, told, strict=True)],
            "curves": self.curve_words,
            "panels": [{"environment": panel.env, "curves": self._panel_curves(panel)} for panel in self.panels],
            "warnings": self.warnings,
        }
        found: dict[str, Any] = finite(document)
        return found

    def _panel_curves(self, panel: Panel) -> dict[str, Any]:
        return {group.label: _band_dict(band) for group, band in zip(self.groups, panel.bands, strict=True) if band}


def compare_groups(groups: Sequence[SampleGroup], metric: str, reading: Reading, options: Options) -> GroupComparison:
    groups = [without_repeats(group) for group in groups]
    if not any(group.counted for group in groups):
        raise MosaicError(nothing_counts(groups))
    envs = _envs(groups, options)
    strata = [_strata(group, envs, options) for group in groups]
    axes = {sample.axis for group in groups for sample in group.counted}
    refuse_mixed_steps(axes, reading)
    bands, curve_note = _bands(groups, envs, axes, options)
    profiles = _profiles(strata)
    results = [
        GroupResult(group.label, group.samples, _estimates(each, envs, options), band, shares)
        for group, each, band, shares in zip(groups, strata, bands, profiles, strict=True)
    ]
    pairs = [
        _difference(groups[i].label, strata[i], groups[j].label, strata[j], options)
        for i, j in combinations(range(len(groups)), 2)
    ]
    return GroupComparison(
        metric,
        reading,
        axes.pop() if len(axes) == 1 else STEPS,
        options,
        unit_of(groups),
        results,
        adjust(pairs),
        envs,
        warning_notes(groups, reading),
        curve_note,
        _panels(groups, envs, axes, options),
    )


# ---- numbers


def _difference(a: str, left: "list[Floats]", b: str, right: "list[Floats]", options: Options) -> Difference:
    """On the environments that both have."""
    shared = [(x, y) for x, y in zip(left, right, strict=True) if len(x) and len(y)]
    if shared:
        return difference(a, [x for x, _ in shared], b, [y for _, y in shared], options.average)
    return Difference(a, b, sum(map(len, left)), sum(map(len, right)), options.average, None)


def _strata(group: SampleGroup, envs: Sequence[str], options: Options) -> "list[Floats]":
    """The values of the group's runs in each environment."""
    found = []
    for env in envs:
        is_mine = [env in (ANY_ENV, s.run.env_id) or (len(envs) == 1 and not s.run.env_id) for s in group.counted]
        values = np.array([s.value for s, mine in zip(group.counted, is_mine, strict=True) if mine], np.float64)
        found.append(options.scales[env].normalised(values) if options.scales else values)
    return found


def _envs(groups: Sequence[SampleGroup], options: Options) -> list[str]:
    envs = sorted({s.run.env_id for group in groups for s in group.counted if s.run.env_id})
    if options.scales is not None:
        unknown = [env for env in envs if env not in options.scales]
        if unknown or not envs:
            example = printable((unknown or ["ENV"])[0])
            raise MosaicError(
                f"The scale of {printable(', '.join(unknown)) or 'these runs'} is not known. "
                f"Give the returns that stand for 0 and 1: --normalise {example}=0:500"
            )
    elif len(envs) > 1 and options.better == HIGHER:
        raise MosaicError(
            "These runs have different environments, whose returns cannot be put together: "
            f"{printable(', '.join(envs))}. Compare those of one with --where 'env_id={printable(envs[0])}', "
            "or all on a common scale with --normalise."
        )
    return envs if options.scales is not None or len(envs) == 1 else [ANY_ENV]


def _estimates(strata: "list[Floats]", envs: Sequence[str], options: Options) -> dict[str, Estimate]:
    present = [values for values in strata if len(values)]
    if not present:
        return {}
    found = estimate_all(present)
    scales = [(options.scales or {}).get(env) or scale_of(env) for env in envs]
    if all(scales) and options.better == HIGHER:
        normalised = present if options.scales else [scales[0].normalised(present[0])]  # type: ignore[union-attr]
        found["optimality_gap"] = estimate(normalised, optimality_gap)
    return found


def _profiles(strata: "Sequence[list[Floats]]") -> "list[Profile | None]":
    present = [[values for values in each if len(values)] for each in strata]
    thresholds = thresholds_for([each for each in present if each])
    return [profile(each, thresholds) if each else None for each in present]


def _bands(
    groups: Sequence[SampleGroup], envs: Sequence[str], axes: set[str], options: Options
) -> "tuple[list[Band | None], Note]":
    """The curve of each group, and where they end or why there are none."""
    nothing: list[Band | None] = [None for _ in groups]
    if len(axes) > 1:
        return nothing, Note(f"No curves: {mixed_words(axes).replace('The', 'the', 1)}.")
    traces = [[sample.trace for sample in group.counted if sample.trace] for group in groups]
    every = [trace for each in traces for trace in each]
    # A mean over environments of which some have ended would jump there.
    shared = _longest(every) if options.is_longest and len(envs) == 1 else common_range(every)
    if shared is None:
        return nothing, Note("No curves: the runs have no steps in common.", "--longest draws each as far as it goes.")
    ends = end_note(groups, shared, options.is_longest and len(envs) == 1)
    if len(envs) > 1:
        return _bands_of_envs(groups, envs, grid_for(every, *shared, STRATIFIED_POINTS), options), ends
    grid = grid_for(every, *shared, options.points)
    if options.scales and envs[0] in options.scales:
        traces = [[_normalised(trace, options.scales[envs[0]]) for trace in each] for each in traces]
    return [band_of(each, grid, options.average, options.band) if each else None for each in traces], ends


def _bands_of_envs(
    groups: Sequence[SampleGroup], envs: Sequence[str], grid: Floats, options: Options
) -> "list[Band | None]":
    """Normalised curves over all environments."""
    found: list[Band | None] = []
    for group in groups:
        strata = [
            [_normalised(s.trace, scale) for s in group.counted if s.trace and s.run.env_id == env]
            for env in envs
            if (scale := (options.scales or {}).get(env))
        ]
        present = [traces for traces in strata if traces]
        found.append(stratified_band(present, grid, options.average, options.band) if present else None)
    return found


def _panels(groups: Sequence[SampleGroup], envs: Sequence[str], axes: set[str], options: Options) -> list[Panel]:
    if len(envs) < 2:
        return []
    found = []
    for env in envs:
        inside = [SampleGroup(g.label, tuple(s for s in g.samples if s.run.env_id == env)) for g in groups]
        bands, _ = _bands(inside, [env], axes, replace(options, scales=None))
        if any(bands):
            found.append(Panel(env, bands))
    return found


def _normalised(trace: Trace, scale: Scale) -> Trace:
    return Trace(trace.step, scale.normalised(trace.value), trace.count)


def _longest(traces: Sequence[Trace]) -> tuple[float, float] | None:
    if not traces:
        return None
    return min(float(trace.step[0]) for trace in traces), max(float(trace.step[-1]) for trace in traces)


def _run_dict(sample: Sample) -> dict[str, Any]:
    run = sample.run
    return {
        "run_id": run.run_id,
        "name": run.name,
        "seed": run.seed if run.seed is not None else run.axes.get("seed"),
        "state": str(run.state),
        "value": sample.value,
        "last_step": float(sample.trace.step[-1]) if sample.trace else None,
        "left_out": sample.left_out,
    }


def _band_dict(band: Band) -> dict[str, Any]:
    return {
        "step": band.step.tolist(),
        "value": band.middle.tolist(),
        "low": band.low.tolist(),
        "high": band.high.tolist(),
        "runs": [int(many) for many in band.runs],
    }


def _profile_dict(shares: Profile) -> dict[str, Any]:
    low, high = (None if edge is None else edge.tolist() for edge in (shares.low, shares.high))
    return {"threshold": shares.thresholds.tolist(), "share": shares.share.tolist(), "low": low, "high": high}
