"""A config held against its worker's schema: the first value that the worker would not take is refused by name."""

import difflib
import json
import operator
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from mosaic.catalog.schema import (
    OWNER_KEY,
    UNAVAILABLE_KEY,
    Schema,
    for_config,
    kinds_of,
    parameters,
    properties_of,
)
from mosaic.model.errors import BadConfig

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


def check(config: Mapping[str, Any], schema: Schema, path: str) -> None:
    """BadConfig with the field's path for the first value the worker would not take."""
    fitting = for_config(schema, config)
    _check_object(config, fitting, path, {name for _, name, _ in parameters(fitting)})


def _check_object(config: Mapping[str, Any], schema: Schema, path: str, names: Collection[str] = ()) -> None:
    """`names`: what a short key may have meant, wherever it lies."""
    known = properties_of(schema)
    for name, value in config.items():
        if name in known:
            # A key that is mistyped in extras may be one of the other places; of an algorithm's own it is not.
            _check_value(value, known[name], f"{path}.{name}", names if name == "extras" else ())
        elif schema.get("additionalProperties") is False:
            owner = schema.get(OWNER_KEY, "the worker")
            raise BadConfig(f"{path}.{name}", f"{owner} has no such key. {_nearest(name, names or known)}")
    for name in schema.get("required", ()):
        if name not in config:
            raise BadConfig(f"{path}.{name}", "the worker needs it. Add it to the config.")


def _check_value(value: Any, schema: Schema, field: str, names: Collection[str] = ()) -> None:
    if not isinstance(schema, Mapping):
        return
    kinds = kinds_of(schema)
    if kinds and not any(_is_a(value, kind) for kind in kinds):
        raise BadConfig(
            field, f"it must be {' or '.join(_NAMES.get(kind, kind) for kind in kinds)}, not {_told(value)}."
        )
    if isinstance(value, str) and value in schema.get(UNAVAILABLE_KEY, {}):
        raise BadConfig(field, f"{value} is not available here: {schema[UNAVAILABLE_KEY][value]}.")
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
        _check_object(value, schema, field, names)


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


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    if near:
        return f"Did you mean '{near[0]}'?"
    listed = f"It has: {', '.join(sorted(known))}."
    return (
        listed
        if len(known) <= _MANY_KEYS
        else f"It has {len(known)} keys, none spelled like it: mosaic run WORKER --help lists them."
    )


def _told(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:37]}…"
