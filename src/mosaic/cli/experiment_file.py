"""An experiment in a YAML or JSON file.

name: lr-sweep                                  default: the name of the file
worker: cleanrl                                 or cleanrl@jax
base: {algo: ppo, env_id: CartPole-v1}          settings; a dot in a key nests
axes: {learning_rate: [1e-4, 3e-4]}             every combination …
seeds: 0-4                                      … with each seed; or a list
max_parallel: 2
options: {cpus: 1, tags: [demo]}                fields of RunOptions
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.catalog.request import SHORT, RunOptions, nest, rename_fields
from mosaic.cli.sweep import parse_seeds
from mosaic.cli.verb import BadUsage
from mosaic.model.errors import BadConfig, MosaicError
from mosaic.model.experiment import FIELDS, read_document
from mosaic.model.names import VALID, is_worker_name
from mosaic.model.nearest import did_you_mean

LONGEST = 1 << 20
KEYS = ("name", *(name for name in FIELDS if name != "search"))


def read_file(path: Path) -> tuple[str, dict[str, Any]]:
    """The name and the document of the experiment in a file."""
    found = load(path, "worker, base, axes and seeds")
    if "space" in found:
        raise MosaicError(f"{path} describes a search. Start it with: mosaic search {path}")
    refuse_unknown(path, found, KEYS)
    name = name_in(path, found)
    worker_in(path, found)
    found.pop("name", None)
    try:
        document = read_document(_complete(found))
        RunOptions.of(document["options"])
        return name, document
    except (BadConfig, BadUsage) as error:
        raise MosaicError(f"{path}: {as_in_file(error)}") from None


def as_in_file(error: BadConfig | BadUsage) -> str:
    """The message, with the field as it is written in a file."""
    message = rename_fields(str(error))
    return message.removeprefix("experiment.").removeprefix("run_").removeprefix("--")


def refuse_unknown(path: Path, found: Mapping[str, Any], keys: Sequence[str]) -> None:
    for key in found:
        if key not in keys:
            hint = did_you_mean(str(key), keys, 1) or f"Known keys: {', '.join(keys)}."
            raise MosaicError(f"{path}: there is no key '{key}'. {hint}")


def name_in(path: Path, found: Mapping[str, Any]) -> str:
    """The name in a file; default: that of the file."""
    name = found.get("name", path.stem)
    if not isinstance(name, str) or not is_worker_name(name):
        raise MosaicError(f"{path}: '{name}' is not a valid name for an experiment. {VALID}")
    return name


def worker_in(path: Path, found: Mapping[str, Any]) -> str:
    worker = found.get("worker")
    if not worker or not isinstance(worker, str):
        raise MosaicError(f"{path}: the worker is missing. Add a line such as: worker: cleanrl")
    return worker


def _complete(found: dict[str, Any]) -> dict[str, Any]:
    worker, at, variant = found["worker"].partition("@")
    document = {**found, "worker": worker, **({"variant": variant} if at else {})}
    if isinstance(base := document.get("base"), dict):
        document["base"] = nest((str(key), value) for key, value in base.items())
    if isinstance(axes := document.get("axes"), dict):
        document["axes"] = {SHORT.get(str(key), str(key)): values for key, values in axes.items()}
    seeds = document.get("seeds")
    if isinstance(seeds, int | str) and not isinstance(seeds, bool):
        document["seeds"] = parse_seeds(str(seeds))
    return document


def load(path: Path, keys: str) -> dict[str, Any]:
    """The mapping in a YAML or JSON file; `keys`: some that it should have."""
    import yaml

    from mosaic.client.yaml_loader import ScriptLoader

    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise MosaicError(f"Cannot read {path}: {reason}.") from None
    if len(text) > LONGEST:
        raise MosaicError(f"{path} is too large for an experiment: more than {LONGEST >> 20} MiB.")
    try:
        found = yaml.load(text, ScriptLoader)  # a safe loader
    except yaml.YAMLError as error:
        raise MosaicError(f"{path} is not valid YAML: {_problem(error)}") from None
    if not isinstance(found, dict):
        raise MosaicError(f"{path} must contain keys such as {keys}.")
    return found


def _problem(error: Exception) -> str:
    """`line 3, column 7: expected …`; what PyYAML says itself has several lines and quotes the text."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or problem is None:
        return " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}."
