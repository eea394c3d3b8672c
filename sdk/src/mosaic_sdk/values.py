"""Values of settings: the kinds of JSON that a type hint allows, and the check of one value against its rules.

The rules are JSON Schema keywords, and the messages are those with which the daemon refuses a config at submit.
"""

import json
import types
from typing import Any, Callable, List, Mapping, Sequence, Tuple, Union, get_args, get_origin

from mosaic_sdk.config import ConfigError

NULL = "null"
_TYPES = {
    int: "integer",
    float: "number",
    bool: "boolean",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
}
_UNIONS = (Union, getattr(types, "UnionType", Union))  # `int | None` is a separate type since Python 3.10
_CLASSES: "Mapping[str, Tuple[type, ...]]" = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "string": (str,),
    "array": (list, tuple),
    "object": (dict,),
    NULL: (type(None),),
}
TYPE_NAMES = {  # as messages of the SDK and of the daemon write them
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "string": "a string",
    "array": "a list",
    "object": "an object",
    NULL: "null",
}
_BOUNDS: "Tuple[Tuple[str, Callable[[Any, Any], bool], str], ...]" = (
    ("minimum", lambda value, bound: value >= bound, "at least"),
    ("maximum", lambda value, bound: value <= bound, "at most"),
    ("exclusiveMinimum", lambda value, bound: value > bound, "more than"),
    ("exclusiveMaximum", lambda value, bound: value < bound, "less than"),
)


def kinds_of(hint: Any) -> List[str]:
    """JSON Schema's names of the types that a hint allows, "null" last; empty: any value."""
    alternatives = get_args(hint) if get_origin(hint) in _UNIONS else (hint,)
    kinds = [_TYPES.get(get_origin(one) or one) for one in alternatives if one is not type(None)]
    if None in kinds:
        return []  # Any, or a class of the worker's own
    known = [kind for kind in kinds if kind]
    return [*known, NULL] if type(None) in alternatives else known


def checked(value: Any, kinds: Sequence[str], rules: Mapping[str, Any], path: str) -> Any:
    """The value as the setting takes it (1e5 for an integer becomes 100000), or ConfigError that names the setting."""
    if isinstance(value, float) and value.is_integer() and "integer" in kinds and "number" not in kinds:
        value = int(value)
    if kinds and not any(_is_a(value, kind) for kind in kinds):
        raise ConfigError(f"{path}: must be {' or '.join(TYPE_NAMES[kind] for kind in kinds)}, not {shown(value)}.")
    if "enum" in rules and value not in rules["enum"]:
        raise ConfigError(
            f"{path}: must be one of {', '.join(_choice(one) for one in rules['enum'])}, not {shown(value)}."
        )
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        _check_bounds(value, rules, path)
    elif isinstance(value, str) and "pattern" in rules:
        _check_pattern(value, rules, path)
    return value


def shown(value: object) -> str:
    """A value as a message quotes it."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _choice(value: object) -> str:
    return value if isinstance(value, str) else shown(value)


def _is_a(value: Any, kind: str) -> bool:
    # To Python a bool is an int; to the author of the config it is not.
    return isinstance(value, _CLASSES[kind]) and isinstance(value, bool) == (kind == "boolean")


def _check_bounds(value: float, rules: Mapping[str, Any], path: str) -> None:
    for keyword, is_within, words in _BOUNDS:
        if keyword in rules and not is_within(value, rules[keyword]):  # NaN is within none
            raise ConfigError(f"{path}: must be {words} {rules[keyword]}, not {shown(value)}.")


def _check_pattern(value: str, rules: Mapping[str, Any], path: str) -> None:
    import re

    if not re.search(rules["pattern"], value):
        examples = " or ".join(map(str, rules.get("examples", ())))
        wanted = f"look like {examples}" if examples else f"match {rules['pattern']}"
        raise ConfigError(f"{path}: must {wanted}; {shown(value)} does not.")
