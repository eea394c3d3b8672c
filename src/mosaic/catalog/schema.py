"""A worker's parameter schema at work: short keys find their place, values are checked, help is written.

The schema is JSON Schema for the worker's config file (mosaic_sdk/schema.py makes one from a class). What is understood
here: type, enum, const, minimum, maximum, exclusiveMinimum, exclusiveMaximum, minLength, maxLength, pattern (with
examples, which a refusal shows), items, minItems, maxItems, properties, required, additionalProperties. Ours, described
in docs/howto/new-worker.md: x-mosaic-variants, -unavailable, -open-with, -algorithms. Others are passed over.
"""

import difflib
import json
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from mosaic.model.errors import BadConfig

Schema = Mapping[str, Any]

VARIANTS_KEY = "x-mosaic-variants"
UNAVAILABLE_KEY = "x-mosaic-unavailable"  # {"rainbow": "why it cannot be had here"}: values that are known and refused
OPEN_KEY = "x-mosaic-open-with"  # "extras.upstream_path": with that key set, the choices here are not all there is
ALGORITHMS_KEY = "x-mosaic-algorithms"  # {"dqn": {"buffer_size": {…}}}: what extras.algo_params holds for each
_OWNER = "x-mosaic-owner"  # who has these keys, when it is not simply the worker; set here alone
_LIFTED = ("enum", "const", "additionalProperties", UNAVAILABLE_KEY, ALGORITHMS_KEY)
PLACES = ((), ("extras",), ("extras", "algo_params"))
_NAMES = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "string": "a text",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_KINDS: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "string": str,
    "array": list,
    "object": dict,
    "null": type(None),
}
_MANY_CHOICES = 12  # more than a person wants to read when one was only mistyped
_MANY_KEYS = 40
_BOUNDS: tuple[tuple[str, Callable[[Any, Any], bool], str], ...] = (  # keyword, when it is broken, in words
    ("minimum", operator.lt, "at least"),
    ("maximum", operator.gt, "at most"),
    ("exclusiveMinimum", operator.le, "more than"),
    ("exclusiveMaximum", operator.ge, "less than"),
)


def put_in_place(settings: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Settings with every short key moved to where the schema has it.

    One that it does not have goes where these settings open a place for it, else it stays on the top level.
    """
    placed: dict[str, Any] = {}
    unknown = {key for key in settings if place_of(key, schema) is None}
    for key in sorted(settings, key=unknown.__contains__):  # those that are known first, in their order
        place = place_of(key, schema)
        folder = placed
        for name in _open_place(placed, schema) if place is None else place:
            folder = folder.setdefault(name, {})
        value = settings[key]
        if isinstance(value, Mapping) and isinstance(folder.get(key), dict):
            folder[key] = {**folder[key], **value}
        else:
            folder[key] = value
    return placed


def place_of(key: str, schema: Schema) -> tuple[str, ...] | None:
    return next((place for place in PLACES if key in _properties(_inside(schema, place))), None)


def _open_place(settings: Mapping[str, Any], schema: Schema) -> tuple[str, ...]:
    for place in PLACES:
        key = _inside(schema, place).get(OPEN_KEY)
        if key and _is_set(settings, str(key)):
            return place
    return ()


def variant_for(config: Mapping[str, Any], schema: Schema) -> tuple[str, str]:
    """The variant that the schema maps a value to, and that value, as the user wrote it: ("jax", "algo=ppo_jax").

    The schema says it so: `"x-mosaic-variants": {"algo": {"ppo_jax": "jax"}}`.
    """
    for key, variants in schema.get(VARIANTS_KEY, {}).items():
        if str(config.get(key)) in variants:
            return str(variants[str(config[key])]), f"{key}={config[key]}"
    return "", ""


def check(config: Mapping[str, Any], schema: Schema, path: str) -> None:
    """BadConfig with the field's path for the first value the worker would not take."""
    fitting = _for_algorithm(_opened(schema, config), config)
    _check_object(config, fitting, path, {name for _, name, _ in parameters(fitting)})


def unavailable(schema: Schema) -> dict[str, dict[str, str]]:
    """For every key that has some: the values that cannot be had here, each with its reason."""
    found = {name: dict(part.get(UNAVAILABLE_KEY, {})) for _, name, part in parameters(schema)}
    return {name: values for name, values in found.items() if values}


def _opened(schema: Schema, config: Mapping[str, Any]) -> Schema:
    """The schema without the limits that a key of this very config lifts."""
    is_open = OPEN_KEY in schema and _is_set(config, str(schema[OPEN_KEY]))
    opened = {keyword: value for keyword, value in schema.items() if not (is_open and keyword in _LIFTED)}
    inside = _properties(schema).items()
    parts = {name: _opened(part, config) if isinstance(part, Mapping) else part for name, part in inside}
    return {**opened, "properties": parts} if parts else opened


def _is_set(config: Mapping[str, Any], key: str) -> bool:
    value: Any = config
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return bool(value)


def _for_algorithm(schema: Schema, config: Mapping[str, Any]) -> Schema:
    """The schema with the hyperparameters of the algorithm that the config names in place of everybody's."""
    extras = _properties(schema).get("extras", {})
    params = _properties(extras).get("algo_params", {})
    own = params.get(ALGORITHMS_KEY, {}).get(str(config.get("algo")))
    if not own:
        return schema
    inside = {**_properties(extras), "algo_params": {**params, "properties": own, _OWNER: config["algo"]}}
    return {**schema, "properties": {**_properties(schema), "extras": {**extras, "properties": inside}}}


def parameters(schema: Schema) -> Iterator[tuple[tuple[str, ...], str, Schema]]:
    """Every key a user may set, with its place, those of the top level first."""
    for place in PLACES:
        for name, part in _properties(_inside(schema, place)).items():
            # Without a word about it, it is a key that MOSAIC fills in, or a place of other keys.
            if part and ("properties" not in part or "description" in part):
                yield place, name, part


def help_rows(schema: Schema) -> list[tuple[str, str, str, str]]:
    """key, kind, default, help of every parameter; a place below the top level is told with the help."""
    rows = []
    for place, name, part in parameters(schema):
        default = _as_typed(part.get("default"))
        where = f"({'.'.join(place)}) " if place else ""
        rows.append((name, kind_of(part), default, where + str(part.get("description", ""))))
    return rows


def kind_of(part: Schema) -> str:
    """`integer 1…64`, `ppo|dqn`, `number > 0`: the values a parameter takes."""
    if "enum" in part:
        return "|".join(str(value) for value in part["enum"] if value is not None)
    return " ".join(["|".join(kind for kind in _kinds(part) if kind != "null"), *_ends(part)]).strip()


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


def _check_object(config: Mapping[str, Any], schema: Schema, path: str, names: Collection[str] = ()) -> None:
    """`names`: what a short key may have meant, wherever it lies."""
    known = _properties(schema)
    for name, value in config.items():
        if name in known:
            _check_value(value, known[name], f"{path}.{name}")
        elif schema.get("additionalProperties") is False:
            owner = schema.get(_OWNER, "the worker")
            raise BadConfig(f"{path}.{name}", f"{owner} has no such key. {_nearest(name, names or known)}")
    for name in schema.get("required", ()):
        if name not in config:
            raise BadConfig(f"{path}.{name}", "the worker needs it. Add it to the config.")


def _check_value(value: Any, schema: Schema, field: str) -> None:
    if not isinstance(schema, Mapping):
        return
    kinds = _kinds(schema)
    if kinds and not any(_is_a(value, kind) for kind in kinds):
        raise BadConfig(
            field, f"it must be {' or '.join(_NAMES.get(kind, kind) for kind in kinds)}, not {_told(value)}."
        )
    if isinstance(value, str) and value in schema.get(UNAVAILABLE_KEY, {}):
        raise BadConfig(field, f"{value} cannot be had here: {schema[UNAVAILABLE_KEY][value]}.")
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices is not None and value not in choices:
        raise BadConfig(field, _not_chosen(value, [str(choice) for choice in choices]))
    if _is_a(value, "number"):
        _check_number(value, schema, field)
    elif isinstance(value, str):
        _check_text(value, schema, field)
    elif isinstance(value, list):
        _check_list(value, schema, field)
    elif isinstance(value, dict):
        _check_object(value, schema, field)


def _not_chosen(value: object, choices: list[str]) -> str:
    near = difflib.get_close_matches(str(value), choices, n=3)
    if near and len(choices) > _MANY_CHOICES:
        return f"{_told(value)} is none of its {len(choices)} values. Did you mean {' or '.join(near)}?"
    return f"it must be one of {', '.join(choices)}, not {_told(value)}."


def _check_number(value: float, schema: Schema, field: str) -> None:
    for keyword, is_broken, words in _BOUNDS:
        if keyword in schema and is_broken(value, schema[keyword]):
            raise BadConfig(field, f"it must be {words} {schema[keyword]}, not {_told(value)}.")


def _check_text(value: str, schema: Schema, field: str) -> None:
    _check_length(len(value), schema, ("minLength", "maxLength"), "characters", field)
    if "pattern" in schema and not re.search(schema["pattern"], value):
        # A person reads an example more easily than a pattern.
        examples = " or ".join(map(str, schema.get("examples", ())))
        shape = f"look like {examples}" if examples else f"match {schema['pattern']}"
        raise BadConfig(field, f"it must {shape}, and {_told(value)} does not.")


def _check_list(value: list[Any], schema: Schema, field: str) -> None:
    _check_length(len(value), schema, ("minItems", "maxItems"), "items", field)
    for number, item in enumerate(value):
        _check_value(item, schema.get("items", {}), f"{field}[{number}]")


def _check_length(length: int, schema: Schema, keywords: tuple[str, str], words: str, field: str) -> None:
    low, high = schema.get(keywords[0], 0), schema.get(keywords[1], length)
    if not low <= length <= high:
        raise BadConfig(field, f"it must have {low} to {high} {words}, not {length}.")


def _is_a(value: Any, kind: str) -> bool:
    # A bool is an int to Python, not to the person who wrote the config; and 3.0 is a whole number to JSON Schema.
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, object))


def _kinds(schema: Schema) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _properties(schema: Schema) -> Schema:
    found = schema.get("properties", {})
    return found if isinstance(found, Mapping) else {}


def _inside(schema: Schema, place: tuple[str, ...]) -> Schema:
    for name in place:
        schema = _properties(schema).get(name, {})
    return schema


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    if near:
        return f"Did you mean '{near[0]}'?"
    listed = f"It has: {', '.join(sorted(known))}."
    return (
        listed if len(known) <= _MANY_KEYS else f"None of its {len(known)} keys is spelled like it; --help lists them."
    )


def _told(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:37]}…"
