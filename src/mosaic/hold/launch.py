"""launch.json as the holder reads it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mosaic.model.errors import MosaicError

UNKILLABLE_S = 60.0


class BadLaunch(MosaicError):
    """launch.json cannot be used."""


class Launch(NamedTuple):
    run_id: str
    attempt: int
    secret: str  # proves that exit.json is ours; empty in a launch of an older daemon
    argv: "list[str]"
    env: "dict[str, str]"
    cwd: str
    time_limit_s: "float | None"
    grace_s: float
    pipe: bool
    commands: bool
    hold: str
    inherit: "list[str]"  # variables that the worker gets from this process's own environment, if it has them
    tailer_argv: "list[str]"
    tailer_env: "dict[str, str]"
    unkillable_s: float  # how long SIGKILL may take; only tests change it


def read_launch(value: "Mapping[str, Any] | None") -> Launch:
    """A Launch, or BadLaunch naming the field."""
    if value is None:
        raise BadLaunch("launch.json is missing or not a JSON object; the daemon writes it before it starts a holder.")
    limit = value.get("time_limit_s")
    return Launch(
        run_id=_text(value, "run_id"),
        attempt=int(_number(value, "attempt")),
        secret=_text(value, "secret") if "secret" in value else "",
        argv=_texts(value, "argv", at_least=1),
        env=_variables(value, "env"),
        cwd=_text(value, "cwd"),
        time_limit_s=None if limit is None else _number(value, "time_limit_s"),
        grace_s=_number(value, "grace_s", 10.0),
        pipe=value.get("pipe") is True,
        commands=value.get("commands") is True,
        hold=_choice(value, "hold", ("auto", "subreaper")),
        inherit=_texts(value, "inherit"),
        tailer_argv=_texts(value, "tailer_argv"),
        tailer_env=_variables(value, "tailer_env"),
        unkillable_s=_number(value, "unkillable_s", UNKILLABLE_S),
    )


def _text(value: "Mapping[str, Any]", name: str) -> str:
    text = value.get(name)
    if not isinstance(text, str) or not text or "\0" in text:
        raise BadLaunch(f"launch.json: {name} must be a string, not {text!r}.")
    return text


def _number(value: "Mapping[str, Any]", name: str, default: "float | None" = None) -> float:
    number = value.get(name, default)
    # NaN and negative numbers would make deadlines that never come, or are already past.
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= 0:
        raise BadLaunch(f"launch.json: {name} must be a non-negative number, not {number!r}.")
    return float(number)


def _texts(value: "Mapping[str, Any]", name: str, at_least: int = 0) -> "list[str]":
    texts = value.get(name, [])
    if not isinstance(texts, list) or not all(_is_text(text) for text in texts) or len(texts) < at_least:
        raise BadLaunch(f"launch.json: {name} must be a list of {at_least} or more strings, not {texts!r}.")
    return texts


def _variables(value: "Mapping[str, Any]", name: str) -> "dict[str, str]":
    pairs = value.get(name, {})
    if not isinstance(pairs, dict) or not all(_is_text(key) and "=" not in key for key in pairs):
        raise BadLaunch(f"launch.json: {name} must map variables to strings.")
    # The values are not in the message, because they may be secrets.
    wrong = [key for key, text in pairs.items() if not _is_text(text)]
    if wrong:
        raise BadLaunch(f"launch.json: {name}: {', '.join(wrong)} must be a string.")
    return pairs


def _choice(value: "Mapping[str, Any]", name: str, allowed: "tuple[str, ...]") -> str:
    choice = value.get(name, allowed[0])
    if choice not in allowed:
        raise BadLaunch(f"launch.json: {name} must be one of {', '.join(allowed)}, not {choice!r}.")
    return str(choice)


def _is_text(text: object) -> bool:
    return isinstance(text, str) and "\0" not in text
