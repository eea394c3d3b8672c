"""Groups of runs that are compared: equal settings but for the seed, or an equal value of a setting."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mosaic.model.errors import MosaicError
from mosaic.model.nearest import did_you_mean
from mosaic.present.compared_runs import EXPERIMENT, NAME, Chosen
from mosaic.present.run_labels import distinct_labels
from mosaic.present.settings_diff import setting_text
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run

SEED = "seed"
MOST_KEYS = 3  # in a label
FACTS: "dict[str, Callable[[Run], str]]" = {  # what every run has besides its settings
    "algo": lambda run: run.algo,
    "env": lambda run: run.env_id,
    "env_id": lambda run: run.env_id,
    "experiment": lambda run: run.experiment,
    "name": lambda run: run.name,
    "tags": lambda run: ", ".join(sorted(run.tags)),
    "worker": lambda run: run.worker_name,
}
PLAIN = ("algo", "experiment", "name", "worker")  # their values need no `key=` before them


@dataclass(frozen=True)
class RunGroup:
    label: str
    runs: "tuple[Run, ...]"


def divide_runs(chosen: Sequence[Chosen], by: Sequence[str], details: "Callable[[Run], Run]") -> list[RunGroup]:
    """`by`: the settings by which the runs are divided; without any, equal settings but for the seed."""
    if by:
        return _by_settings([run for each in chosen for run in each.runs], by, details)
    single = [run for each in chosen if each.kind not in (EXPERIMENT, NAME) for run in each.runs]
    groups = []
    for each in chosen:
        if each.kind == EXPERIMENT:
            groups += _by_axes(each, is_alone=len(chosen) == 1)
        elif each.kind == NAME:
            groups.append(RunGroup(printable(each.reference), each.runs))
    return _distinct([*groups, *_alike(single, details)])


def _by_axes(chosen: Chosen, is_alone: bool) -> list[RunGroup]:
    """The groups of one experiment: equal axes apart from the seed. Its name tells them from those of others."""
    found: dict[str, list[Run]] = {}
    for run in chosen.runs:
        axes = {key: value for key, value in run.axes.items() if _last(key) != SEED}
        text = " ".join(f"{_last(key)}={setting_text(value)}" for key, value in axes.items())
        found.setdefault(text, []).append(run)
    name = printable(chosen.reference)
    if len(found) == 1:
        return [RunGroup(name, tuple(runs)) for runs in found.values()]
    prefix = "" if is_alone else f"{name} "
    return [RunGroup(printable(f"{prefix}{text}".strip()) or name, tuple(runs)) for text, runs in found.items()]


def _by_settings(runs: "Sequence[Run]", by: Sequence[str], details: "Callable[[Run], Run]") -> list[RunGroup]:
    found: dict[tuple[str, ...], list[Run]] = {}
    values = {key: {run.run_id: _value(run, key, details) for run in runs} for key in by}
    for key, each in values.items():
        if not any(each.values()):
            raise _unknown_key(key, runs, details)
    for run in runs:
        found.setdefault(tuple(values[key][run.run_id] or "-" for key in by), []).append(run)
    labels = {each: " ".join(map(_label, by, each)) for each in found}
    return [RunGroup(printable(labels[each]), tuple(found[each])) for each in sorted(found, key=_order)]


def _label(key: str, value: str) -> str:
    return value if key in PLAIN and value != "-" else f"{_last(key)}={value}"


def _order(values: tuple[str, ...]) -> list[tuple[int, float, str]]:
    return [(0, float(value), "") if _is_number(value) else (1, 0.0, value) for value in values]


def _value(run: "Run", key: str, details: "Callable[[Run], Run]") -> str:
    """Empty if the run does not have it."""
    if key in FACTS and (fact := FACTS[key](run)):
        return fact
    for settings in (run.axes, {} if key in FACTS else details(run).settings or {}):
        matching = [name for name in settings if name == key] or [name for name in settings if _last(name) == key]
        if len(matching) > 1:
            raise MosaicError(f"'{key}' may mean several settings: {', '.join(sorted(matching))}. Write one in full.")
        if matching:
            return setting_text(settings[matching[0]])
    return ""


def _unknown_key(key: str, runs: "Sequence[Run]", details: "Callable[[Run], Run]") -> MosaicError:
    known = sorted({_last(name) for run in runs for name in (details(run).settings or {})} | FACTS.keys())
    hint = did_you_mean(key, known) or f"Settings: {', '.join(known[:20])}{' …' if len(known) > 20 else ''}."
    return MosaicError(f"None of these runs has the setting '{key}'. {hint}")


def _alike(runs: "Sequence[Run]", details: "Callable[[Run], Run]") -> list[RunGroup]:
    """Single runs: those with equal settings but for the seed are a group."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(_fingerprint(details(run)), []).append(run)
    names = distinct_labels({run.run_id: run.name for run in runs})
    if len(found) == len(runs):
        return [RunGroup(names[run.run_id], (run,)) for run in runs]
    settings = [_settings(details(members[0])) for members in found.values()]
    labels = [_own_name(members, runs) or _differing(i, settings) for i, members in enumerate(found.values())]
    return [
        RunGroup(printable(label or names[members[0].run_id]), tuple(members))
        for label, members in zip(labels, found.values(), strict=True)
    ]


def _settings(run: "Run") -> dict[str, Any]:
    own = {key: value for key, value in (run.settings or {}).items() if _last(key) != SEED}
    return {"worker": run.worker_name, **own}


def _fingerprint(run: "Run") -> str:
    return json.dumps(_settings(run), sort_keys=True, default=str) if run.settings else run.run_id


def _own_name(members: "Sequence[Run]", runs: "Sequence[Run]") -> str:
    """The name that all these runs have and no others; empty if there is none."""
    (name, *others) = {run.name for run in members}
    return "" if others or sum(run.name == name for run in runs) > len(members) else name


def _differing(index: int, settings: Sequence[Mapping[str, Any]]) -> str:
    """The first settings in which this group differs from the others."""
    keys = sorted({key for each in settings for key in each})
    unequal = [key for key in keys if len({setting_text(each.get(key)) for each in settings}) > 1]
    return " ".join(_label(_last(key), setting_text(settings[index].get(key))) for key in unequal[:MOST_KEYS])


def _distinct(groups: Iterable[RunGroup]) -> list[RunGroup]:
    """Groups whose labels can be told apart."""
    found: dict[str, RunGroup] = {}
    for group in groups:
        label, number = group.label, 2
        while label in found:
            label, number = f"{group.label} ({number})", number + 1
        found[label] = RunGroup(label, group.runs)
    return list(found.values())


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False
