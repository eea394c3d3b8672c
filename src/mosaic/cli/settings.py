"""The key=value arguments of `mosaic run`, and its errors in the names that the user typed."""

from collections.abc import Sequence
from typing import Any

from mosaic.catalog import typed_settings
from mosaic.catalog.request import rename_fields
from mosaic.cli.verb import BadUsage
from mosaic.model.errors import BadConfig

TYPED = {  # fields of the trainer config, and what sets them on the command line
    "metadata.worker.config.": "",
    "metadata.worker.script": "--script",
    "metadata.worker.python": "--python",
    "metadata.worker.cwd": "--cwd",
    "payload.resources.gpus.requested": "--gpus",
    "payload.resources.cpus": "--cpus",
    "payload.resources.memory_mb": "--memory",
    "payload.limits.time_s": "--time-limit",
    "payload.limits.spin_s": "--spin-limit",
    "payload.on": "--on",
    "payload.requeue_as_resume": "--requeue-as-resume",
    "payload.parts": "--part",
    "metadata.run_name": "--name",
    "metadata.tags": "--tag",
    "experiment.axes.": "--sweep ",
    "experiment.base.": "",
}
OPTIONS = ("name", "tag", "gpus", "gpus_mandatory", "cpus", "memory", "time_limit", "spin_limit", "detach", "json")


def parse_settings(arguments: Sequence[str]) -> dict[str, Any]:
    """`["steps=200", "extras.lr=3e-4"]` → `{"steps": 200, "extras": {"lr": 0.0003}}`."""
    try:
        return typed_settings.parse_settings(arguments)
    except BadConfig as error:
        raise BadUsage(str(error)) from None


def as_typed(message: str) -> str:
    """The message with config fields named as on the command line, because the user has not seen the config."""
    message = rename_fields(message, TYPED)
    key = message.partition(":")[0]
    if key in OPTIONS and "has no such setting" in message:
        return f"{key}: the worker has no such setting. If you mean the option, use --{key.replace('_', '-')}."
    return message
