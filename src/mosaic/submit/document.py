"""The submitted text as a JSON object that is small, shallow and made of plain text - before anybody looks into it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from mosaic.model.errors import BadConfig

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
LONGEST_PATH = 200  # of what a complaint names: a name of 2 MB over half a million items would take a terabyte


def read_document(config: str | Mapping[str, Any]) -> dict[str, Any]:
    """A fresh object that shares nothing with `config`."""
    text = config if isinstance(config, str) else _as_text(config)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise BadConfig("config", f"it has {size:,} bytes; at most {MAX_BYTES:,} are read. Keep big data in a file.")
    document = _parse(text)
    if not isinstance(document, dict):
        raise BadConfig("config", f"it must be a JSON object, not {type(document).__name__}.")
    _check(document)
    return document


def fingerprint(config: str | Mapping[str, Any]) -> str:
    """The same for two texts of one config, whatever their spaces and the order of their keys."""
    text = json.dumps(read_document(config), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _as_text(config: Mapping[str, Any]) -> str:
    try:
        return json.dumps(config)
    except (TypeError, ValueError) as error:
        raise BadConfig("config", f"it cannot be written as JSON ({error}).") from error
    except RecursionError as error:
        raise _too_deep() from error


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadConfig("config", f"it is not JSON ({error}).") from error
    except RecursionError as error:
        raise _too_deep() from error


def _check(document: dict[str, Any]) -> None:
    # A loop with its own stack: the depth is what is being checked.
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
    # JSON can spell half a character (\ud800); no file, database or message takes it.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadConfig(path.removeprefix("config."), "it holds half of a surrogate pair, which is no text.") from error


def _too_deep() -> BadConfig:
    return BadConfig("config", f"it is nested too deep; {MAX_DEPTH} levels are read.")
