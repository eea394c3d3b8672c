"""What `mosaic search` submits: a run of the search worker, the driver, which submits the trials itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mosaic_sdk.search_space import Dimension, parse_dimension

from mosaic.catalog.check import check
from mosaic.catalog.common import with_common
from mosaic.catalog.in_force import flattened
from mosaic.catalog.placement import PATH, put_in_place
from mosaic.catalog.request import SHORT, RunOptions, describe_worker, nest, trainer_config, worker_section
from mosaic.catalog.schema import Schema
from mosaic.model.errors import BadConfig
from mosaic.model.names import VALID, is_worker_name
from mosaic.model.rundir import StateRoot

DRIVER = "search"  # the worker, in the catalog
TAG = "search"


@dataclass(frozen=True)
class Search:
    """A search as the user described it."""

    name: str  # of the experiment
    worker: str  # of the trials: NAME or NAME@VARIANT
    settings: Mapping[str, Any]  # fixed ones, as `mosaic run` gives them
    space: Mapping[str, str]  # those to search: {"learning_rate": "log:1e-5:1e-2"}
    options: Mapping[str, Any] = field(default_factory=dict)  # of the search worker: trials, metric, sampler …
    of_trials: RunOptions = field(default_factory=RunOptions)  # resources, limits and tags of each trial


def search_config(search: Search, root: StateRoot) -> dict[str, Any]:
    """The driver's trainer config. BadConfig for a name, a setting or a range that cannot be used."""
    if not is_worker_name(search.name):
        raise BadConfig("--name", f"'{search.name}' is not a valid name. {VALID}")
    if search.of_trials.requeue_as_resume:
        # The driver would start another trial beside the one that continues it.
        raise BadConfig("--requeue-as-resume", "a search replaces a trial that its cluster ended. Leave it out.")
    dimensions = read_space(search.space)
    trials = worker_section(search.worker, dict(search.settings), root)
    _, descriptor = describe_worker(trials["name"], str(trials.get("variant", "")), root)
    schema = {} if descriptor.problem else descriptor.schema
    places = place_space(dimensions, trials["config"], with_common(schema)) if schema else {}
    payload = trainer_config({}, search.of_trials)["payload"]
    config = {
        **{"experiment": search.name, "worker": trials, "space": dict(search.space), "places": places},
        **{"payload": payload, "tags": list(search.of_trials.tags), **search.options},
    }
    section = {**worker_section(DRIVER, config, root), "drives": True}
    driver = trainer_config(section, RunOptions(name=f"search {search.name}", tags=(TAG,), cpus=0.0, memory_mb=0))
    driver["metadata"]["experiment"] = {"name": search.name}
    return driver


def read_space(space: Mapping[str, str]) -> dict[str, Dimension]:
    try:
        return {name: parse_dimension(name, text) for name, text in space.items()}
    except ValueError as error:
        raise BadConfig("--space", str(error)) from None


def place_space(dimensions: Mapping[str, Dimension], fixed: Mapping[str, Any], schema: Schema) -> dict[str, str]:
    """The dotted key of each setting in the worker's config. BadConfig if the worker does not accept all its values."""
    whole = {name: dimension.ends[0] for name, dimension in dimensions.items()}
    places: dict[str, str] = {}
    for name, dimension in dimensions.items():
        for value in dimension.ends:
            placed = _placed(fixed, {**whole, name: value}, schema)
            check(placed, schema, PATH)
        others = flattened(_placed(fixed, {key: whole[key] for key in whole if key != name}, schema))
        places[name] = next((key for key in flattened(placed) if key not in others), "")
        if not places[name]:
            raise BadConfig("--space", f"{name} is searched and has a fixed value as well. Leave one of them out.")
    return places


def _placed(fixed: Mapping[str, Any], chosen: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    return put_in_place(_merged(fixed, nest(chosen.items())), schema)


def _merged(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    whole = dict(base)
    for name, value in top.items():
        here = whole.get(name)
        is_deeper = isinstance(here, Mapping) and isinstance(value, Mapping)
        if name in whole and not is_deeper:
            raise BadConfig("--space", f"{name} is searched and has a fixed value as well. Leave one of them out.")
        whole[name] = _merged(here, value) if isinstance(here, Mapping) and isinstance(value, Mapping) else value
    return whole


def read_seeds(text: str) -> list[int]:
    """`0-2` or `1,5,9`."""
    parts = [part.partition("-") for part in text.split(",")]
    try:
        found = [seed for low, dash, high in parts for seed in range(int(low), int(high if dash else low) + 1)]
    except ValueError:
        found = []
    if not found or len(set(found)) < len(found) or len(found) > 1000:
        raise BadConfig("--seeds", f"'{text}' is not a list of seeds such as 0-2 or 1,5,9.")
    return found


def spaces_of(texts: Sequence[str]) -> dict[str, str]:
    """`["learning_rate=log:1e-5:1e-2"]` → `{"learning_rate": "log:1e-5:1e-2"}`."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, rest = text.partition("=")
        key = SHORT.get(key, key)
        if not equals or not key:
            raise BadConfig("--space", f"'{text}' is not KEY=RANGE, such as learning_rate=log:1e-5:1e-2.")
        if key in found:
            raise BadConfig("--space", f"{key} is given twice.")
        found[key] = rest
    return found
