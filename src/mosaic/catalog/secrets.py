"""Removes secrets from what is shown or stored: configs, environments, command lines."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

MASK = "***"
_SECRET = re.compile(r"SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.I)
# These words have harmless uses too (max_tokens = 512, key_dim = 64): only strings under them are secrets.
_SECRET_TEXT = re.compile(r"KEY|TOKEN|AUTH", re.I)
# api_key_env and api_key_file say where a secret is, not what it is.
_HARMLESS = re.compile(r"KEYBOARD|MONKEY|KEYFRAME|TOKENI[ZS]E|AUTHOR(?!I)|(?:KEY|TOKEN)_(?:ENV|FILE)$", re.I)
_IN_TEXT = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), rf"\1 {MASK}"),
    # \b: without it the match is tried at each letter of a long word, and 100 kB of them block the daemon for minutes.
    (re.compile(r"(\b\w+://[^/\s:@]*):[^/\s@]+@"), rf"\1:{MASK}@"),
)
_ARGUMENT_LISTS = ("arguments", "argv")


def redact(values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy in which every value under a secret name, at any depth, is masked."""
    return {name: _redact_value(name, value) for name, value in values.items()}


def redact_arguments(arguments: Sequence[str]) -> list[str]:
    """A copy of a command line with `--api-key X`, `--api-key=X` and `api_key=X` masked."""
    shown: list[str] = []
    is_secret = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if is_secret and not argument.startswith("--"):
            shown.append(MASK)
            is_secret = False
            continue
        names_secret = _names_secret_text(name)
        is_secret = names_secret and not equals and name.startswith("-")
        shown.append(f"{name}={MASK}" if names_secret and equals else _scrub(argument))
    return shown


def masked_keys(values: Mapping[str, Any]) -> list[str]:
    """The dotted keys of what `redact` has masked in a config."""
    keys = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            keys += [f"{name}.{key}" for key in masked_keys(value)]
        elif any(isinstance(item, str) and MASK in item for item in (value if isinstance(value, list) else [value])):
            keys.append(name)
    return keys


def _redact_value(name: str, value: Any) -> Any:
    if _SECRET.search(name):
        return _mask(value, (str, int, float))
    if _names_secret_text(name):
        return _mask(value, (str,))
    if name in _ARGUMENT_LISTS and _is_list_of_strings(value):
        return redact_arguments(value)
    return _redact_inside(value)


def _redact_inside(value: Any) -> Any:
    if isinstance(value, Mapping):
        return redact(value)
    if isinstance(value, list | tuple):
        return [_redact_inside(item) for item in value]
    return _scrub(value) if isinstance(value, str) else value


def _mask(value: Any, kinds: tuple[type, ...]) -> Any:
    if isinstance(value, Mapping):
        return {name: _mask(item, kinds) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mask(item, kinds) for item in value]
    # An empty string or a boolean is not a secret, and showing it helps to find out why a login failed.
    is_hidden = isinstance(value, kinds) and not isinstance(value, bool) and value != ""
    return MASK if is_hidden else value


def _names_secret_text(name: str) -> bool:
    rest = _HARMLESS.sub("", name)
    return bool(_SECRET.search(rest) or _SECRET_TEXT.search(rest))


def _scrub(text: str) -> str:
    for pattern, replacement in _IN_TEXT:
        text = pattern.sub(replacement, text)
    return text


def _is_list_of_strings(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
