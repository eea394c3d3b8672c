"""key=value words of `mosaic run`: JSON where the value is JSON, text otherwise; dots nest."""

import json
from collections.abc import Sequence
from typing import Any

from mosaic.cli.verb import BadUsage

SHORT = {"env": "env_id"}
TYPED = {  # a field of the trainer config, as it is written on the command line
    "metadata.worker.config.": "",
    "payload.resources.gpus.requested": "--gpus",
    "payload.resources.cpus": "--cpus",
    "payload.resources.memory_mb": "--memory",
    "payload.limits.time_s": "--time-limit",
    "payload.limits.spin_s": "--spin-limit",
}


def parse_settings(words: Sequence[str]) -> dict[str, Any]:
    """`["steps=200", "extras.lr=3e-4"]` → `{"steps": 200, "extras": {"lr": 0.0003}}`."""
    settings: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not all(key.split(".")):
            raise BadUsage(f"{word} is not key=value, as in steps=200 or extras.lr=3e-4")
        _put(settings, SHORT.get(key, key), parse_value(text))
    return settings


def parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _put(settings: dict[str, Any], key: str, value: Any) -> None:
    *outer, last = key.split(".")
    place = settings
    for name in outer:
        place = place.setdefault(name, {})
        if not isinstance(place, dict):
            raise BadUsage(f"{key}: '{name}' already has a value of its own; it cannot hold '{last}' as well")
    if last in place:
        raise BadUsage(f"{key} is given twice")
    place[last] = value


def as_typed(message: str) -> str:
    """What is wrong with a config, in the words of who typed a command and never saw the config."""
    for field, typed in TYPED.items():
        if message.startswith(field):
            return typed + message[len(field) :]
    return message
