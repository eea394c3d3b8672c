"""Checks a config against the schema of its worker. The first invalid value is refused, with its path."""

import difflib
import json
import operator
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from mosaic_sdk.values import TYPE_NAMES

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

_KINDS: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "string": str,
    "array": list,
    "object": dict,
    "null": type(None),
}
_MANY_CHOICES = 12  # with more, only similar ones are listed
_MANY_KEYS = 40
_BOUNDS: tuple[tuple[str, Callable[[Any, Any], bool], str], ...] = (  # keyword, whether a value is within it, in words
    ("minimum", operator.ge, "at least"),
    ("maximum", operator.le, "at most"),
    ("exclusiveMinimum", operator.gt, "more than"),
    ("exclusiveMaximum", operator.lt, "less than"),
)


def check(config: Mapping[str, Any], schema: Schema, path: str) -> None:
    """BadConfig with the path of the first invalid value."""
    fitting = for_config(schema, config)
    _check_object(config, fitting, path, {name for _, name, _ in parameters(fitting)})


def _check_object(config: Mapping[str, Any], schema: Schema, path: str, names: Collection[str] = ()) -> None:
    """`names`: keys of any place, to suggest one for an unknown key."""
    known = properties_of(schema)
    for name, value in config.items():
        if name in known:
            # A mistyped key in extras may belong to another place; one in algo_params does not.
            _check_value(value, known[name], f"{path}.{name}", names if name == "extras" else ())
        elif schema.get("additionalProperties") is False:
            owner = schema.get(OWNER_KEY, "the worker")
            raise BadConfig(f"{path}.{name}", f"{owner} has no such setting. {_nearest(name, names or known)}")
    for name in schema.get("required", ()):
        if name not in config:
            raise BadConfig(f"{path}.{name}", "missing. The worker requires it.")


def _check_value(value: Any, schema: Schema, field: str, names: Collection[str] = ()) -> None:
    if not isinstance(schema, Mapping):
        return
    kinds = kinds_of(schema)
    if kinds and not any(is_a(value, kind) for kind in kinds):
        expected = " or ".join(TYPE_NAMES.get(kind, kind) for kind in kinds)
        raise BadConfig(field, f"must be {expected}, not {_shown(value)}.")
    if isinstance(value, str) and value in schema.get(UNAVAILABLE_KEY, {}):
        raise BadConfig(field, f"{value} is unavailable here: {schema[UNAVAILABLE_KEY][value]}.")
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices is not None and value not in choices:
        raise BadConfig(field, _not_chosen(value, [str(choice) for choice in choices]))
    if is_a(value, "number"):
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
        return f"{_shown(value)} is not one of its {len(choices)} valid values. Did you mean {' or '.join(near)}?"
    return f"must be one of {', '.join(choices)}, not {_shown(value)}."


def _check_number(value: float, schema: Schema, field: str) -> None:
    for keyword, is_within, words in _BOUNDS:
        if keyword in schema and not is_within(value, schema[keyword]):  # NaN is within none
            raise BadConfig(field, f"must be {words} {schema[keyword]}, not {_shown(value)}.")


def _check_text(value: str, schema: Schema, field: str) -> None:
    _check_length(len(value), schema, ("minLength", "maxLength"), "characters", field)
    if "pattern" in schema and not re.search(schema["pattern"], value):
        # An example is easier to read than a pattern.
        examples = " or ".join(map(str, schema.get("examples", ())))
        shape = f"look like {examples}" if examples else f"match {schema['pattern']}"
        raise BadConfig(field, f"must {shape}; {_shown(value)} does not.")


def _check_list(value: list[Any], schema: Schema, field: str) -> None:
    _check_length(len(value), schema, ("minItems", "maxItems"), "items", field)
    for number, item in enumerate(value):
        _check_value(item, schema.get("items", {}), f"{field}[{number}]")


def _check_length(length: int, schema: Schema, keywords: tuple[str, str], words: str, field: str) -> None:
    low, high = schema.get(keywords[0], 0), schema.get(keywords[1], length)
    if not low <= length <= high:
        raise BadConfig(field, f"must have {low} to {high} {words}, not {length}.")


def is_a(value: Any, kind: str) -> bool:
    # In Python a bool is an int, in a config it is not; in JSON Schema 3.0 is an integer.
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, object))


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    if near:
        return f"Did you mean '{near[0]}'?"
    listed = f"Its settings: {', '.join(sorted(known))}."
    return (
        listed
        if len(known) <= _MANY_KEYS
        else f"It has {len(known)} settings; list them with: mosaic run WORKER --help"
    )


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:37]}…"
