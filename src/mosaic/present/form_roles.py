"""The few settings that nearly every worker has, found by the names that workers use for them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mosaic_sdk import keywords

from mosaic.catalog.schema import Schema
from mosaic.catalog.typed_settings import parse_settings
from mosaic.model.errors import BadConfig
from mosaic.present.form_fields import BOOL, CHOICE, Field

ALGORITHM, ENVIRONMENT, STEPS, SEED = "Algorithm", "Environment", "Steps", "Seed"
FRAMES, TENSORBOARD, WANDB, GPU = "Live frames", "TensorBoard", "W&B", "GPU"
FIRST = (ALGORITHM, ENVIRONMENT, STEPS, SEED)  # those that matter most, in this order
TOTAL_NAMES = ("total_timesteps", "total_steps", "steps")
_NAMES = {
    ALGORITHM: ("algo", "algorithm"),
    ENVIRONMENT: ("env_id", "env", "environment"),
    STEPS: TOTAL_NAMES,
    SEED: ("seed",),
    FRAMES: ("fastlane_video_mode",),
    TENSORBOARD: ("tensorboard", "use_tensorboard", "track_tensorboard"),
    WANDB: ("track_wandb", "wandb", "use_wandb"),
    GPU: ("cuda", "use_cuda", "gpu", "use_gpu"),
}
_SWITCHES = (TENSORBOARD, WANDB, GPU)  # only as a field that is on or off


def roles_of(fields: Iterable[Field]) -> dict[str, Field]:
    """The field of each role that the worker has."""
    known = {field.name: field for field in reversed(tuple(fields))}  # the first of a name wins: it is the outer one
    found = {role: next((known[name] for name in names if name in known), None) for role, names in _NAMES.items()}
    return {role: field for role, field in found.items() if field and _suits(role, field)}


def _suits(role: str, field: Field) -> bool:
    if role == FRAMES:
        return field.kind == CHOICE
    return role not in _SWITCHES or field.kind == BOOL


def suggestions(field: Field, schema: Schema) -> list[str]:
    """Values that the worker's author uses: the default, the examples of the setting and of the worker, its scripts."""
    found = [field.default, *map(str, field.part.get("examples") or ()), *_in_examples(field, schema)]
    return list(dict.fromkeys(value for value in found if value))


def _in_examples(field: Field, schema: Schema) -> Iterator[str]:
    aliases = ("env",) if field.name == "env_id" else ()
    lines = schema.get(keywords.EXAMPLES)
    for line in lines if isinstance(lines, list) else ():
        settings = _parsed(str(line))
        yield from (str(settings[name]) for name in (field.name, *aliases) if name in settings)
    scripts = schema.get(keywords.SCRIPTS)
    if field.name in _NAMES[ENVIRONMENT] and isinstance(scripts, Mapping):
        for part in scripts.values():
            yield from map(str, part.get("environments") or () if isinstance(part, Mapping) else ())


def _parsed(line: str) -> dict[str, Any]:
    try:
        return parse_settings(line.split())
    except BadConfig:
        return {}
