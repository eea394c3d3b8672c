"""A search in a YAML or JSON file.

name: lr-search                                 default: the name of the file
worker: cleanrl                                 or cleanrl@jax
base: {algo: ppo, env_id: CartPole-v1}          settings that all trials have; a dot in a key nests
space:                                          settings to search: a range, or a list of values
  learning_rate: log:1e-5:1e-2
  num_steps: [64, 128, 256]
trials: 20                                      and metric, direction, sampler, pruner, max_parallel … as the options
seeds: 0-2                                      or a list
options: {cpus: 1, tags: [demo]}                fields of RunOptions, of each trial
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mosaic.catalog.request import SHORT, RunOptions, nest
from mosaic.catalog.search import Search, read_seeds, read_space
from mosaic.cli.experiment_file import as_in_file, load, name_in, refuse_unknown, worker_in
from mosaic.model.errors import BadConfig, MosaicError

ENDINGS = (".yaml", ".yml", ".json")
# Settings of the search worker, whose schema checks them and has the defaults.
OPTIONS = (
    *("trials", "metric", "direction", "sampler", "sampler_options", "pruner", "pruner_options"),
    *("report_every", "max_parallel", "max_failures"),
)
KEYS = ("name", "worker", "base", "space", "seeds", "sampler_seed", *OPTIONS, "options")


def is_file(text: str) -> bool:
    """Whether it names a file and not a worker, whose name has neither an ending nor a slash."""
    return text.endswith(ENDINGS) or "/" in text


def read_search(path: Path, name: str = "") -> Search:
    """The search in a file; `name` replaces the one in it."""
    found = load(path, "worker, base, space and trials")
    if "axes" in found and "space" not in found:
        raise MosaicError(f"{path} describes an experiment. Start it with: mosaic experiment run {path}")
    refuse_unknown(path, found, KEYS)
    name, worker = name or name_in(path, found), worker_in(path, found)
    try:
        base, space = _mapping(found, "base"), _mapping(found, "space")
        if not space:
            raise BadConfig("space", "nothing to search. Add a range, such as learning_rate: log:1e-5:1e-2")
        settings = nest((str(key), value) for key, value in base.items())
        ranges = {SHORT.get(str(key), str(key)): _range(value) for key, value in space.items()}
        read_space(ranges)
        return Search(name, worker, settings, ranges, _options(found), RunOptions.of(_mapping(found, "options")))
    except BadConfig as error:
        raise MosaicError(f"{path}: {as_in_file(error)}") from None


def _options(found: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: found[name] for name in OPTIONS if name in found}
    if "seeds" in found:
        seeds = found["seeds"]
        options["seeds"] = seeds if isinstance(seeds, list) else read_seeds(str(seeds))
    if "sampler_seed" in found:
        options["seed"] = found["sampler_seed"]
    return options


def _range(value: Any) -> str:
    """A list of values is a choice."""
    if not isinstance(value, list):
        return str(value)
    words = {True: "true", False: "false"}
    return "choice:" + ",".join(words[item] if isinstance(item, bool) else str(item) for item in value)


def _mapping(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = found.get(name) or {}
    if not isinstance(value, Mapping):
        raise BadConfig(name, "must have keys and values.")
    return value
