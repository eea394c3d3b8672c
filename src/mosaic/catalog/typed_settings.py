"""Settings as people type them: `key=value`, where a value is JSON if it can be parsed as such, else text."""

import json
from collections.abc import Iterable
from typing import Any

from mosaic.catalog.request import nest
from mosaic.model.errors import BadConfig


def parse_settings(arguments: Iterable[str]) -> dict[str, Any]:
    """`["steps=200", "extras.lr=3e-4"]` → `{"steps": 200, "extras": {"lr": 0.0003}}`."""
    return nest([split_setting(argument) for argument in arguments])


def split_setting(argument: str) -> tuple[str, Any]:
    """The key and the value of one argument; BadConfig if it has no key."""
    key, equals, text = argument.partition("=")
    if not equals or not all(key.split(".")):
        raise BadConfig("", f"'{argument}' is not of the form key=value, such as steps=200 or extras.lr=3e-4")
    return key, parse_value(text)


def parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def type_value(value: Any) -> str:
    """The text that `parse_value` turns into this value."""
    if isinstance(value, str) and parse_value(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)
