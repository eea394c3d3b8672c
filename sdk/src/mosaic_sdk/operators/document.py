"""Reading an evaluation script: checks that its parts share, with messages that name the key."""

import difflib
import re
from typing import Any, Dict, Iterable, List, Mapping, Sequence

from mosaic_sdk.config import ConfigError
from mosaic_sdk.files import is_file_name
from mosaic_sdk.values import checked, shown

NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}\Z")


def an_object(value: Any, path: str) -> Dict[str, Any]:
    """A copy of the object; its keys must be texts."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{path}: must be an object, not {shown(value)}.")
    for key in value:
        if not isinstance(key, str):
            raise ConfigError(f"{path}: the key {shown(key)} must be a string. Write it in quotes.")
    return dict(value)


def a_list(value: Any, path: str) -> List[Any]:
    return list(checked(value, ["array"], {}, path))


def a_text(value: Any, path: str) -> str:
    """A text that is not empty."""
    text = checked(value, ["string"], {}, path)
    if not text.strip():
        raise ConfigError(f"{path}: must not be empty.")
    return str(text)


def a_name(name: Any, path: str) -> str:
    """The name of an operator, a lane or a group."""
    # "." and ".." match the pattern, and are folders.
    if not isinstance(name, str) or not NAME.match(name) or not is_file_name(name):
        raise ConfigError(
            f"{path}: {shown(name)} is not a valid name. Use at most 40 letters, digits, '_', '.' and '-'."
        )
    return name


def refuse_unknown(given: Mapping[str, Any], known: Sequence[str], path: str = "") -> None:
    for key in given:
        if key not in known:
            where = f"{path}.{key}" if path else str(key)
            raise ConfigError(f"{where}: there is no such key. {suggestion(str(key), known)}")


def one_of(value: str, known: Iterable[str], path: str, what: str) -> str:
    """`value` if it is one of `known`; `what` names the kind of thing in the message."""
    choices = list(known)
    if value not in choices:
        raise ConfigError(f"{path}: there is no {what} {shown(value)}. {suggestion(str(value), choices)}")
    return value


def suggestion(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    return f"Did you mean '{near[0]}'?" if near else f"Choose from: {', '.join(known)}."
