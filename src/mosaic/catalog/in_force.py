"""The settings in force in a run: what was submitted, and the schema's defaults for everything else."""

from collections.abc import Iterator, Mapping
from typing import Any

from mosaic.catalog.common import FILLED_IN
from mosaic.catalog.schema import PLACES, SAME_KEY, Schema, for_config, inherits, parameters


def settings_in_force(config: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Flat, under dotted keys, defaults included.

    There are no defaults if the settings are inherited from a checkpoint: the worker then reads those that the config
    leaves out from the checkpoint.
    """
    defaults = {} if inherits(config, schema) else _defaults(for_config(schema, config))
    return dict(_flatten({**defaults, **_by_place(config)}))


def flattened(config: Mapping[str, Any]) -> dict[str, Any]:
    """Only what was submitted, under dotted keys: all that is known without a schema."""
    return dict(_flatten(_by_place(config)))


def _defaults(schema: Schema) -> dict[tuple[str, ...], Any]:
    return {
        (*place, name): part["default"]
        for place, name, part in parameters(schema)
        if "default" in part and SAME_KEY not in part
    }


def _by_place(config: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """Each setting under its place and name. A value replaces its default as a whole, objects included."""
    found: dict[tuple[str, ...], Any] = {}
    for place in PLACES:
        part: Any = config
        for name in place:
            part = part.get(name) if isinstance(part, Mapping) else None
        for name, value in part.items() if isinstance(part, Mapping) else ():
            if (*place, name) not in PLACES or not isinstance(value, Mapping):
                found[(*place, name)] = value
    return {key: value for key, value in found.items() if key[0] not in FILLED_IN}


def _flatten(values: Mapping[tuple[str, ...], Any]) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten({(*key, str(name)): item for name, item in value.items()})
        else:
            yield ".".join(key), value
