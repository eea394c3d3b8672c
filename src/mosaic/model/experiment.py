"""An experiment: a named group of runs with one base config, settings that vary (axes) and seeds.

document   {"worker": "cleanrl", "variant": "",
            "base": {"algo": "ppo", "env_id": "CartPole-v1"},      settings, nested
            "axes": {"learning_rate": [1e-4, 3e-4]},               every combination is run; keys as people type them
            "seeds": [0, 1, 2],                                    of each combination; []: the seed does not vary
            "max_parallel": 0,                                     at most this many runs at a time; 0: no limit
            "options": {"gpus": 1, "tags": ["a"]},                 what each run requests
            "search": null}                                        {"driver": RUN}: a search, whose driver adds the runs

A point is one combination: {"learning_rate": 1e-4, "seed": 0}. A run's `axes` are its point.
"""

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mosaic.model.errors import BadConfig, ExperimentDiffers
from mosaic.model.names import VALID, is_worker_name
from mosaic.model.nearest import did_you_mean

FIELDS = ("worker", "variant", "base", "axes", "seeds", "max_parallel", "options", "search")
FIXED = ("worker", "variant", "base")  # an experiment keeps these for ever
MAX_BYTES = 256 << 10  # of a document
MAX_RUNS = 10_000  # of one grid
MAX_SEED = 2**63 - 1
SEED = "seed"
Point = Mapping[str, Any]


@dataclass(frozen=True)
class Experiment:
    name: str
    document: Mapping[str, Any]
    note: str = ""
    created_at: float = 0.0
    revision: int = 0
    is_reconstructed: bool = False  # there is no record of it: the document is what its runs show
    counts: Mapping[str, int] = field(default_factory=dict)  # of its runs, by the names of their states

    @property
    def runs(self) -> int:
        return sum(self.counts.values())

    def to_dict(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        facts = {"name": self.name, "note": self.note, "created_at": self.created_at, "runs": self.runs}
        found = {"counts": dict(self.counts), "is_reconstructed": self.is_reconstructed}
        return {**facts, **found, "document": dict(self.document)}


def check_name(name: str) -> str:
    if not is_worker_name(name):
        raise BadConfig("experiment", f"'{name}' is not a valid name. {VALID}")
    return name


def read_document(document: object) -> dict[str, Any]:
    """The complete document, with defaults; BadConfig for what is not valid."""
    if not isinstance(document, Mapping):
        raise BadConfig("experiment", "must be an object with worker, base, axes and seeds.")
    for key in document:
        if key not in FIELDS:
            hint = did_you_mean(str(key), FIELDS, 1) or f"Known fields: {', '.join(FIELDS)}."
            raise BadConfig(f"experiment.{key}", f"there is no such field. {hint}")
    complete = {
        "worker": _text(document, "worker"),
        "variant": _text(document, "variant"),
        "base": _object(document, "base"),
        "axes": _axes(_object(document, "axes")),
        "seeds": _seeds(document.get("seeds") or []),
        "max_parallel": _limit(document.get("max_parallel") or 0),
        "options": _object(document, "options"),
        "search": _search(document.get("search")),
    }
    _refuse_clashes(complete)
    if len(canonical(complete)) > MAX_BYTES:
        raise BadConfig("experiment", f"takes more than {MAX_BYTES >> 10} KiB as JSON.")
    if run_count(complete) > MAX_RUNS:
        raise BadConfig("experiment", f"has {run_count(complete):,} runs; the maximum is {MAX_RUNS:,}.")
    return complete


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name) or ""
    if not isinstance(value, str):
        raise BadConfig(f"experiment.{name}", f"must be a string, not {_shown(value)}.")
    return value


def _object(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name) or {}
    if not isinstance(value, Mapping):
        raise BadConfig(f"experiment.{name}", f"must be an object, not {_shown(value)}.")
    return dict(value)


def _axes(axes: dict[str, Any]) -> dict[str, list[Any]]:
    for key, values in axes.items():
        path = f"experiment.axes.{key}"
        if not isinstance(values, list) or not values:
            raise BadConfig(path, f"must be a list of values, not {_shown(values)}.")
        if doubles := [value for at, value in enumerate(values) if _same(value) in map(_same, values[:at])]:
            raise BadConfig(path, f"{_shown(doubles[0])} is given twice.")
    return axes


def _seeds(seeds: object) -> list[int]:
    is_list = isinstance(seeds, list) and all(
        isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed <= MAX_SEED for seed in seeds
    )
    if not is_list:
        raise BadConfig("experiment.seeds", f"must be a list of integers from 0, not {_shown(seeds)}.")
    found: list[int] = list(seeds)  # type: ignore[call-overload]
    if doubles := [seed for seed, times in Counter(found).items() if times > 1]:
        raise BadConfig("experiment.seeds", f"{doubles[0]} is given twice.")
    return found


def _limit(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1_000_000:
        raise BadConfig("experiment.max_parallel", f"must be a number of runs, or 0 for no limit, not {_shown(value)}.")
    return value


def _search(value: object) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, Mapping):
        raise BadConfig("experiment.search", f"must be an object or null, not {_shown(value)}.")
    return None if value is None else dict(value)


def _refuse_clashes(document: Mapping[str, Any]) -> None:
    if SEED in document["axes"]:
        raise BadConfig(f"experiment.axes.{SEED}", "is not an axis. List the seeds in `seeds` (--seeds 0-4).")
    for key in [*document["axes"], *([SEED] if document["seeds"] else [])]:
        if _has(document["base"], key):
            raise BadConfig(f"experiment.base.{key}", "varies in this experiment, so it cannot have a fixed value too.")


def _has(settings: Mapping[str, Any], dotted: str) -> bool:
    found: Any = settings
    for name in dotted.split("."):
        if not isinstance(found, Mapping) or name not in found:
            return False
        found = found[name]
    return True


# ---- points


def run_count(document: Mapping[str, Any]) -> int:
    count = len(document["seeds"]) or 1
    for values in document["axes"].values():
        count *= len(values)
    return count


def points(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every combination, the seeds varying fastest: the groups of a table finish one after another."""
    axes = dict(document["axes"])
    if document["seeds"]:
        axes[SEED] = document["seeds"]
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def settings_at(document: Mapping[str, Any], point: Point) -> dict[str, Any]:
    """The settings of the run at this point, nested. BadConfig if an axis contradicts the base."""
    settings: dict[str, Any] = json.loads(json.dumps(document["base"]))
    for key, value in point.items():
        *outer, last = key.split(".")
        place = settings
        for name in outer:
            place = place.setdefault(name, {})
            if not isinstance(place, dict):
                raise BadConfig(
                    f"experiment.axes.{key}", f"'{name}' has a value in the base, so it contains no '{last}'."
                )
        place[last] = value
    return settings


def group_of(point: Point) -> dict[str, Any]:
    """The point without its seed: runs of one group differ in the seed only."""
    return {key: value for key, value in point.items() if key != SEED}


def point_key(point: Point) -> str:
    """Equal for equal points, whatever the order of keys and the spelling of numbers (1e5, 100000)."""
    return canonical({key: _same_value(value) for key, value in point.items()})


def run_key(name: str, point: Point, failed_run: str = "") -> str:
    """The idempotency key of a run of the grid. `failed_run`: the id of the run that it repeats."""
    mark = hashlib.sha256(point_key(point).encode()).hexdigest()[:16]
    return f"experiment/{name}/{mark}{f'/retry-{failed_run}' if failed_run else ''}"


def label(point: Point) -> str:
    """`learning_rate=0.001 seed=3`."""
    return " ".join(f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in point.items())


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _same(value: object) -> str:
    return canonical(_same_value(value))


def _same_value(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _same_value(item) for key, item in value.items()}
    return [_same_value(item) for item in value] if isinstance(value, list) else value


# ---- two documents with one name


def merged(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The old document with the new one's further seeds and axis values, and its limit and options.

    ExperimentDiffers if it would be another experiment.
    """
    differences = [*_differences(old, new)]
    if differences:
        raise ExperimentDiffers(name, differences)
    axes = {key: _union(values, new["axes"][key]) for key, values in old["axes"].items()}
    return {
        **old,
        "axes": axes,
        "seeds": _union(old["seeds"], new["seeds"]),
        "max_parallel": new["max_parallel"],
        "options": new["options"],
        "search": new["search"] if new["search"] is not None else old["search"],
    }


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old["search"] and not new["search"]:
        yield "it is a search, whose driver adds the runs"
    for key in ("worker", "variant"):
        if old[key] != new[key]:
            yield f"its {key} is {_shown(old[key])}, not {_shown(new[key])}"
    before, after = dict(_flat(old["base"])), dict(_flat(new["base"]))
    for key in sorted({*before, *after}):
        if _same(before.get(key)) != _same(after.get(key)):
            yield _difference(key, before, after)
    if set(old["axes"]) != set(new["axes"]):
        yield f"it varies {_names(old['axes'])}, and now {_names(new['axes'])} would vary"
    if bool(old["seeds"]) != bool(new["seeds"]):
        yield "it has no seeds, and now there are some" if new["seeds"] else "it has seeds, and now there are none"


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _union(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    known = {_same(value) for value in old}
    return [*old, *(value for value in new if _same(value) not in known)]


def _names(axes: Iterable[str]) -> str:
    return ", ".join(sorted(axes)) or "no setting"


def _difference(key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if key not in before:
        return f"it does not set {key}, which is {_shown(after[key])} now"
    if key not in after:
        return f"it sets {key} to {_shown(before[key])}, which is not set now"
    return f"its {key} is {_shown(before[key])}, not {_shown(after[key])}"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}…"


# ---- an experiment without a record


def reconstructed(worker: str, found: Sequence[Point], driver: str = "") -> dict[str, Any]:
    """The document as far as the points of its runs show it. The base is lost. `driver`: of a search."""
    axes: dict[str, list[Any]] = {}
    for point in found:
        for key, value in point.items():
            axes[key] = _union(axes.get(key, []), [value])
    seeds = [seed for seed in axes.pop(SEED, []) if isinstance(seed, int)]
    return {
        "worker": worker,
        "variant": "",
        "base": {},
        "axes": axes,
        "seeds": sorted(seeds),
        "max_parallel": 0,
        "options": {},
        "search": {"driver": driver} if driver else None,
    }
