"""A worker's parameter schema: which settings there are, where each belongs, and how help describes them.

The schema is JSON Schema for the worker's config file (mosaic_sdk/schema.py builds one from a class), in the subset
that keywords.py lists, with our own x-mosaic-* keywords (docs/howto/new-worker.md). check.py checks a config against
it, placement.py moves keys to their place, in_force.py fills in the defaults.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

VARIANTS_KEY = "x-mosaic-variants"
UNAVAILABLE_KEY = "x-mosaic-unavailable"  # {"rainbow": "why it cannot be had here"}: values that are known and refused
OPEN_KEY = "x-mosaic-open-with"  # "extras.upstream_path": with that key set, the choices here are not all there is
ALGORITHMS_KEY = "x-mosaic-algorithms"  # {"dqn": {"buffer_size": {…}}}: what extras.algo_params holds for each
SAME_KEY = "x-mosaic-same-as"  # "steps": another name of that setting, in the same place
INHERITS_KEY = "x-mosaic-inherits-with"  # ["extras.policy_path"]: with one set, what is left out comes from there
WAY_KEYS = ("x-mosaic-resume", "x-mosaic-eval")  # how a run of this worker is made from another
CHECKPOINT_KEY = "x-mosaic-checkpoint"  # true: this setting is a checkpoint, a path or a run's name
# {"quick": {"path": "/…/quick.sh", "description": "…", "phases": 2, "total_timesteps": 50000}}: they come with a worker
SCRIPTS_KEY = "x-mosaic-scripts"
OWNER_KEY = "x-mosaic-owner"  # who has these keys, when it is not simply the worker; set here alone
EXAMPLES_KEY = "x-mosaic-examples"  # ["env=CartPole-v1 steps=1000"]: settings as a user types them
LAB_KEY = "x-mosaic-lab"  # configs for `mosaic worker test`
OUR_KEYS = (
    *(VARIANTS_KEY, UNAVAILABLE_KEY, OPEN_KEY, ALGORITHMS_KEY, SAME_KEY, INHERITS_KEY, *WAY_KEYS, CHECKPOINT_KEY),
    *(SCRIPTS_KEY, EXAMPLES_KEY, LAB_KEY),
)
_LIFTED = ("enum", "const", "additionalProperties", UNAVAILABLE_KEY, ALGORITHMS_KEY)
PLACES = ((), ("extras",), ("extras", "algo_params"))


def place_of(key: str, schema: Schema) -> tuple[str, ...] | None:
    """Where a key belongs; None when the schema does not have it."""
    return next((place for place in PLACES if key in properties_of(inside(schema, place))), None)


def variant_for(config: Mapping[str, Any], schema: Schema) -> tuple[str, str]:
    """The variant that the schema maps a value to, and that value, as the user wrote it: ("jax", "algo=ppo_jax").

    The schema says it so: `"x-mosaic-variants": {"algo": {"ppo_jax": "jax"}}`.
    """
    for key, variants in schema.get(VARIANTS_KEY, {}).items():
        if str(config.get(key)) in variants:
            return str(variants[str(config[key])]), f"{key}={config[key]}"
    return "", ""


def for_config(schema: Schema, config: Mapping[str, Any]) -> Schema:
    """The schema as it counts for this very config: limits lifted by one of its keys, its algorithm's parameters."""
    return _for_algorithm(_opened(schema, config), config)


def unavailable(schema: Schema) -> dict[str, dict[str, str]]:
    """For every key that has some: the values that cannot be had here, each with its reason."""
    found = {name: dict(part.get(UNAVAILABLE_KEY, {})) for _, name, part in parameters(schema)}
    return {name: values for name, values in found.items() if values}


def inherits(config: Mapping[str, Any], schema: Schema) -> bool:
    """Whether settings that the config leaves out come from a checkpoint instead of the schema's defaults."""
    return any(is_set(config, str(key)) for key in schema.get(INHERITS_KEY, ()))


def ships(schema: Schema, script: str) -> bool:
    """Whether this very file comes with the worker."""
    shipped = schema.get(SCRIPTS_KEY, {}).values()
    return any(os.path.realpath(str(part.get("path", ""))) == os.path.realpath(script) for part in shipped)


def is_set(config: Mapping[str, Any], key: str) -> bool:
    """Whether a dotted key has a value that is not empty."""
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
    """The schema with one algorithm's hyperparameters in place of everybody's."""
    extras = properties_of(schema).get("extras", {})
    params = properties_of(extras).get("algo_params", {})
    algo = _algorithm(schema, config)
    own = params.get(ALGORITHMS_KEY, {}).get(algo)
    if not own:
        return schema
    within = {**properties_of(extras), "algo_params": {**params, "properties": own, OWNER_KEY: algo}}
    return {**schema, "properties": {**properties_of(schema), "extras": {**extras, "properties": within}}}


def _algorithm(schema: Schema, config: Mapping[str, Any]) -> str:
    """The one that the config names; else the default one, unless a checkpoint decides."""
    if config.get("algo") or inherits(config, schema):
        return str(config.get("algo"))
    return str(properties_of(schema).get("algo", {}).get("default"))


def parameters(schema: Schema) -> Iterator[tuple[tuple[str, ...], str, Schema]]:
    """Every key a user may set, with its place, those of the top level first."""
    for place in PLACES:
        for name, part in properties_of(inside(schema, place)).items():
            # Without a word about it, it is a key that MOSAIC fills in, or a place of other keys.
            if part and ("properties" not in part or "description" in part):
                yield place, name, part


def help_rows(schema: Schema) -> list[tuple[str, str, str, str]]:
    """key, kind, default, help of every parameter. Its place is not told: every key finds its own."""
    return [
        (name, kind_of(part), _as_typed(part.get("default")), str(part.get("description", "")))
        for _, name, part in parameters(schema)
    ]


def kind_of(part: Schema) -> str:
    """`integer 1…64`, `ppo|dqn`, `number > 0`: the values a parameter takes."""
    if "enum" in part:
        return "|".join(str(value) for value in part["enum"] if value is not None)
    return " ".join(["|".join(kind for kind in kinds_of(part) if kind != "null"), *_ends(part)]).strip()


def _ends(part: Schema) -> list[str]:
    if "minimum" in part and "maximum" in part:
        return [f"{part['minimum']}…{part['maximum']}"]
    signs = {"minimum": "≥", "maximum": "≤", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}
    return [f"{sign} {part[keyword]}" for keyword, sign in signs.items() if keyword in part]


def _as_typed(value: object) -> str:
    """As one would write it after `key=`."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def kinds_of(schema: Schema) -> list[str]:
    """JSON Schema's names of the types a value may have; none: any."""
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def properties_of(schema: Schema) -> Schema:
    found = schema.get("properties", {})
    return found if isinstance(found, Mapping) else {}


def inside(schema: Schema, place: tuple[str, ...]) -> Schema:
    """The part of the schema at a place; empty when there is none."""
    for name in place:
        schema = properties_of(schema).get(name, {})
    return schema


def oddity(schema: Schema) -> str:
    """What makes this no schema that others can read without care; empty when nothing does."""
    for place in PLACES:
        part = inside(schema, place)
        if not isinstance(part.get("properties", {}), Mapping):
            return f"{'.'.join((*place, 'properties'))} is not an object"
        for name, value in properties_of(part).items():
            if not isinstance(value, Mapping):
                return f"{'.'.join((*place, name))} is not described by an object"
    for keyword in WAY_KEYS:
        way = schema.get(keyword)
        keys = sorted(way) if isinstance(way, Mapping) else []
        for key in keys:
            if any(other.startswith(f"{key}.") for other in keys):
                return f"{keyword} sets {key} and something inside it"
    return ""
