"""A worker's schema: which settings there are, where each belongs, and how `--help` describes them.

The schema is JSON Schema for the worker's config file (mosaic_sdk/schema.py builds one from a class), in the subset
that keywords.py lists, with the keywords of mosaic_sdk.keywords. check.py checks a config against
it, placement.py moves keys to their place, in_force.py fills in the defaults.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from mosaic_sdk import keywords

Schema = Mapping[str, Any]

# What each of them means is in mosaic_sdk.keywords.
VARIANTS_KEY = keywords.VARIANTS
UNAVAILABLE_KEY = keywords.UNAVAILABLE
OPEN_KEY = keywords.OPEN_WITH
ALGORITHMS_KEY = keywords.ALGORITHMS
SAME_KEY = keywords.SAME_AS
INHERITS_KEY = keywords.INHERITS_WITH
DERIVING_KEYS = (keywords.RESUME, keywords.EVAL)
INTERACTIVE_KEY = keywords.INTERACTIVE
CHECKPOINT_KEY = keywords.CHECKPOINT
EXPORT_KEY = keywords.EXPORT
SCRIPTS_KEY = keywords.SCRIPTS
OWNER_KEY = keywords.OWNER
_LIFTED = ("enum", "const", "additionalProperties", UNAVAILABLE_KEY, ALGORITHMS_KEY)
PLACES = ((), ("extras",), ("extras", "algo_params"))


def place_of(key: str, schema: Schema) -> tuple[str, ...] | None:
    """Where a key belongs; None if the schema does not have it."""
    return next((place for place in PLACES if key in properties_of(inside(schema, place))), None)


def variant_for(config: Mapping[str, Any], schema: Schema) -> tuple[str, str]:
    """The variant that a setting requires, and that setting as the user wrote it: ("jax", "algo=ppo_jax").

    In the schema: `"x-mosaic-variants": {"algo": {"ppo_jax": "jax"}}`.
    """
    for key, variants in schema.get(VARIANTS_KEY, {}).items():
        if str(config.get(key)) in variants:
            return str(variants[str(config[key])]), f"{key}={config[key]}"
    return "", ""


def for_config(schema: Schema, config: Mapping[str, Any]) -> Schema:
    """The schema as it applies to this config: with lifted limits, and with the parameters of its algorithm."""
    return _for_algorithm(_opened(schema, config), config)


def unavailable(schema: Schema) -> dict[str, dict[str, str]]:
    """The unavailable values of each key, with their reasons."""
    found = {name: dict(part.get(UNAVAILABLE_KEY, {})) for _, name, part in parameters(schema)}
    return {name: values for name, values in found.items() if values}


def inherits(config: Mapping[str, Any], schema: Schema) -> bool:
    """Whether settings that the config leaves out come from a checkpoint, not from the schema's defaults."""
    return any(is_set(config, str(key)) for key in schema.get(INHERITS_KEY, ()))


def ships(schema: Schema, script: str) -> bool:
    """Whether this file is shipped with the worker."""
    shipped = schema.get(SCRIPTS_KEY, {}).values()
    return any(os.path.realpath(str(part.get("path", ""))) == os.path.realpath(script) for part in shipped)


def is_set(config: Mapping[str, Any], key: str) -> bool:
    """Whether a dotted key has a non-empty value."""
    value: Any = config
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return bool(value)


def _opened(schema: Schema, config: Mapping[str, Any]) -> Schema:
    is_open = OPEN_KEY in schema and is_set(config, str(schema[OPEN_KEY]))
    opened = {keyword: value for keyword, value in schema.items() if not (is_open and keyword in _LIFTED)}
    within = properties_of(schema).items()
    parts = {name: _opened(part, config) if isinstance(part, Mapping) else part for name, part in within}
    return {**opened, "properties": parts} if parts else opened


def _for_algorithm(schema: Schema, config: Mapping[str, Any]) -> Schema:
    """The schema with the hyperparameters of one algorithm only."""
    extras = properties_of(schema).get("extras", {})
    params = properties_of(extras).get("algo_params", {})
    algo = _algorithm(schema, config)
    own = params.get(ALGORITHMS_KEY, {}).get(algo)
    if not own:
        return schema
    within = {**properties_of(extras), "algo_params": {**params, "properties": own, OWNER_KEY: algo}}
    return {**schema, "properties": {**properties_of(schema), "extras": {**extras, "properties": within}}}


def _algorithm(schema: Schema, config: Mapping[str, Any]) -> str:
    """The algorithm in the config; else the default one, unless it is inherited from a checkpoint."""
    if config.get("algo") or inherits(config, schema):
        return str(config.get("algo"))
    return str(properties_of(schema).get("algo", {}).get("default"))


def parameters(schema: Schema) -> Iterator[tuple[tuple[str, ...], str, Schema]]:
    """Every setting with its place, the top level first."""
    for place in PLACES:
        for name, part in properties_of(inside(schema, place)).items():
            # An empty part is a key that MOSAIC fills in; one with properties and no description is a place.
            if part and ("properties" not in part or "description" in part):
                yield place, name, part


def help_rows(schema: Schema) -> list[tuple[str, str, str, str]]:
    """Key, kind, default and help of every setting. Places are not shown: a key finds its own."""
    return [
        (name, kind_of(part), _as_typed(part.get("default")), str(part.get("description", "")))
        for _, name, part in parameters(schema)
    ]


def kind_of(part: Schema) -> str:
    """The valid values of a setting: `integer 1…64`, `ppo|dqn`, `number > 0`."""
    if "enum" in part:
        return "|".join(str(value) for value in part["enum"] if value is not None)
    return " ".join(["|".join(kind for kind in kinds_of(part) if kind != "null"), *_ends(part)]).strip()


def _ends(part: Schema) -> list[str]:
    if "minimum" in part and "maximum" in part:
        return [f"{part['minimum']}…{part['maximum']}"]
    signs = {"minimum": "≥", "maximum": "≤", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}
    return [f"{sign} {part[keyword]}" for keyword, sign in signs.items() if keyword in part]


def _as_typed(value: object) -> str:
    """The value as a user would write it after `key=`."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def kinds_of(schema: Schema) -> list[str]:
    """The JSON Schema types that a value may have; empty: any."""
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def properties_of(schema: Schema) -> Schema:
    found = schema.get("properties", {})
    return found if isinstance(found, Mapping) else {}


def inside(schema: Schema, place: tuple[str, ...]) -> Schema:
    """The part of the schema at a place; empty if there is none."""
    for name in place:
        schema = properties_of(schema).get(name, {})
    return schema


def schema_problem(schema: Schema) -> str:
    """Why this is not a schema that other code can read safely; empty if it is one."""
    for place in PLACES:
        part = inside(schema, place)
        if not isinstance(part.get("properties", {}), Mapping):
            return f"{'.'.join((*place, 'properties'))} is not an object"
        for name, value in properties_of(part).items():
            if not isinstance(value, Mapping):
                return f"{'.'.join((*place, name))} is not described by an object"
    interactive = schema.get(INTERACTIVE_KEY)
    ways = {keyword: schema.get(keyword) for keyword in DERIVING_KEYS}
    ways[INTERACTIVE_KEY] = interactive.get("settings") if isinstance(interactive, Mapping) else None
    for keyword, way in ways.items():
        keys = sorted(way) if isinstance(way, Mapping) else []
        for key in keys:
            if any(other.startswith(f"{key}.") for other in keys):
                return f"{keyword} sets {key} and also a key inside it"
    return ""
