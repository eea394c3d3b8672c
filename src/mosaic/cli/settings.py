"""The key=value arguments of `mosaic run`: values are JSON if they can be parsed as such, else text; dots nest."""

import json
from collections.abc import Sequence
from typing import Any

from mosaic.catalog.request import nest, rename_fields
from mosaic.cli.verb import BadUsage
from mosaic.model.errors import BadConfig

TYPED = {  # fields of the trainer config, and what sets them on the command line
    "metadata.worker.config.": "",
    "metadata.worker.script": "--script",
    "payload.resources.gpus.requested": "--gpus",
    "payload.resources.cpus": "--cpus",
    "payload.resources.memory_mb": "--memory",
    "payload.limits.time_s": "--time-limit",
    "payload.limits.spin_s": "--spin-limit",
}
OPTIONS = ("name", "tag", "gpus", "gpus_mandatory", "cpus", "memory", "time_limit", "spin_limit", "detach", "json")


def parse_settings(arguments: Sequence[str]) -> dict[str, Any]:
    """`["steps=200", "extras.lr=3e-4"]` → `{"steps": 200, "extras": {"lr": 0.0003}}`."""
    pairs = [_split(argument) for argument in arguments]
    try:
        return nest(pairs)
    except BadConfig as error:
        raise BadUsage(str(error)) from None


def parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _split(argument: str) -> tuple[str, Any]:
    key, equals, text = argument.partition("=")
    if not equals or not all(key.split(".")):
        raise BadUsage(f"'{argument}' is not of the form key=value, such as steps=200 or extras.lr=3e-4")
    return key, parse_value(text)


def as_typed(message: str) -> str:
    """The message with config fields named as on the command line, because the user has not seen the config."""
    message = rename_fields(message, TYPED)
    key = message.partition(":")[0]
    if key in OPTIONS and "has no such setting" in message:
        return f"{key}: the worker has no such setting. If you mean the option, use --{key.replace('_', '-')}."
    return message
