"""The command line that submits the same run as a form: its guarantee is that both build the same trainer config."""

import shlex
from collections.abc import Iterator
from decimal import Decimal

from mosaic.catalog.derived import BEST
from mosaic.catalog.request import RunOptions
from mosaic.catalog.typed_settings import type_value
from mosaic.present.durations import spell_duration
from mosaic.present.run_request import EVALUATE, RESUMED, SCRIPT, RunRequest


def command_line(request: RunRequest, host: str = "") -> str:
    """`mosaic run cleanrl seed=3 --gpus 1`, quoted for a shell."""
    words = ["mosaic", *(("--host", host) if host else ()), *_verb(request)]
    return shlex.join(words)


def _verb(request: RunRequest) -> Iterator[str]:
    settings = [f"{key}={type_value(value)}" for key, value in request.settings]
    if request.mode == SCRIPT:
        yield from ("run", *_option("--script", request.script), *_option("--env-of", request.worker))
        for setting in settings:
            yield from _option("--set", setting)
        yield from _options(request.options)
        yield from ("--", *request.arguments) if request.arguments else ()
        return
    if request.mode in (RESUMED, EVALUATE):
        yield from ("resume" if request.mode == RESUMED else "eval", request.parent, *settings)
        yield from _derivation(request)
    else:
        yield from ("run", request.worker, *settings)
    yield from _options(request.options)


def _derivation(request: RunRequest) -> Iterator[str]:
    asked = request.evaluation if request.mode == EVALUATE else {}
    if request.mode == EVALUATE and request.checkpoint == BEST:
        yield "--best"
    else:
        yield from _option("--checkpoint", request.checkpoint)
    for name in ("episodes", "seed"):
        if asked.get(name) is not None:
            yield from (f"--{name}", str(asked[name]))
    if asked.get("video"):
        yield "--video"


def _options(options: RunOptions) -> Iterator[str]:
    yield from _option("--name", options.name)
    for tag in options.tags:
        yield from _option("--tag", tag)
    if options.gpus:
        yield from ("--gpus", str(options.gpus))
    if options.gpus_mandatory:
        yield "--gpus-mandatory"
    if options.cpus is not None:
        yield from ("--cpus", _plain(options.cpus))
    if options.memory_mb is not None:
        yield from ("--memory", f"{options.memory_mb}M")
    for name, option in (("time_s", "--time-limit"), ("spin_s", "--spin-limit")):
        if name in options.limits:
            yield from (option, spell_duration(options.limits[name]))
    if options.commands:
        yield "--commands"


def _option(name: str, value: str) -> tuple[str, ...]:
    if not value:
        return ()
    # A value that starts with a dash would be taken for an option.
    return (f"{name}={value}",) if value.startswith("-") else (name, value)


def _plain(number: float) -> str:
    """Without an exponent, which the option does not accept."""
    text = format(Decimal(repr(float(number))), "f")
    return text.removesuffix(".0")
