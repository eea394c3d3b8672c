"""The schema of a run that continues another one: its defaults are the settings of that run."""

import copy
from collections.abc import Mapping
from typing import Any

from mosaic.catalog.schema import ALGORITHMS_KEY, PLACES, Schema, inside, properties_of


def inherited(schema: Schema, config: Mapping[str, Any]) -> Schema:
    """A copy whose defaults are what `config` has. Nothing is required: the daemon completes the rest."""
    made: dict[str, Any] = copy.deepcopy(dict(schema))
    made.pop("required", None)
    for place in PLACES:
        given: Any = config
        for name in place:
            given = given.get(name) if isinstance(given, Mapping) else None
        if isinstance(given, Mapping):
            part = inside(made, place)
            for properties in (properties_of(part), *_of_algorithms(part)):
                _set_defaults(properties, given)
    return made


def _of_algorithms(part: Schema) -> list[Any]:
    found = part.get(ALGORITHMS_KEY)
    return list(found.values()) if isinstance(found, Mapping) else []


def _set_defaults(properties: Any, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        part = properties.get(name) if isinstance(properties, Mapping) else None
        if isinstance(part, dict) and part:
            part["default"] = value
