"""Parses a submitted config: a JSON object of limited size and depth, with valid strings only."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from mosaic.model.errors import BadConfig

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
LONGEST_PATH = 200  # of a field in an error message: a name of 2 MB above half a million items would take a terabyte


def read_document(config: str | Mapping[str, Any]) -> dict[str, Any]:
    """The object as a new dict that shares nothing with `config`."""
    text = config if isinstance(config, str) else _as_text(config)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise BadConfig("config", f"has {size:,} bytes; the maximum is {MAX_BYTES:,}. Put large data into a file.")
    document = _parse(text)
    if not isinstance(document, dict):
        raise BadConfig("config", f"must be a JSON object, not {type(document).__name__}.")
    _check(document)
    return document


def fingerprint(document: Mapping[str, Any]) -> str:
    """A hash of the config that does not depend on whitespace or the order of keys."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _as_text(config: Mapping[str, Any]) -> str:
    try:
        return json.dumps(config)
    except (TypeError, ValueError) as error:
        raise BadConfig("config", f"cannot be written as JSON ({error}).") from error
    except RecursionError as error:
        raise _too_deep() from error


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadConfig("config", f"is not valid JSON ({error}).") from error
    except RecursionError as error:
        raise _too_deep() from error


def _check(document: dict[str, Any]) -> None:
    # An explicit stack, not recursion: the depth itself is being checked.
    todo: list[tuple[str, Any, int]] = [("config", document, 1)]
    while todo:
        path, value, depth = todo.pop()
        if depth > MAX_DEPTH:
            raise _too_deep()
        if isinstance(value, str):
            _check_text(path, value)
        elif isinstance(value, dict):
            for name in value:
                _check_text(path, name)
            todo += [(f"{path[:LONGEST_PATH]}.{name[:LONGEST_PATH]}", item, depth + 1) for name, item in value.items()]
        elif isinstance(value, list):
            todo += [(f"{path[:LONGEST_PATH]}[{number}]", item, depth + 1) for number, item in enumerate(value)]


def _check_text(path: str, text: str) -> None:
    # JSON can contain half a surrogate pair (\ud800), which cannot be stored or sent.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadConfig(
            path.removeprefix("config."), "contains half of a surrogate pair, which is not valid text."
        ) from error


def _too_deep() -> BadConfig:
    return BadConfig("config", f"is nested too deeply; the maximum is {MAX_DEPTH} levels.")
