"""key=value words of `mosaic run`: JSON where the value is JSON, text otherwise; dots nest."""

import json
from collections.abc import Sequence
from typing import Any

from mosaic.catalog.request import nest, rename_fields
from mosaic.cli.verb import BadUsage
from mosaic.model.errors import BadConfig

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
    pairs = [_split(word) for word in words]
    try:
        return nest(pairs)
    except BadConfig as error:
        raise BadUsage(str(error)) from None


def parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _split(word: str) -> tuple[str, Any]:
    key, equals, text = word.partition("=")
    if not equals or not all(key.split(".")):
        raise BadUsage(f"{word} is not key=value, as in steps=200 or extras.lr=3e-4")
    return key, parse_value(text)


def as_typed(message: str) -> str:
    """What is wrong with a config, in the words of who typed a command and never saw the config."""
    return rename_fields(message, TYPED)
