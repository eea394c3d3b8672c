"""An action space as a model can choose from it. mosaic_sdk.operators.spaces has the descriptions of spaces."""

from collections.abc import Mapping
from typing import Any

from mosaic_sdk.config import ConfigError

from llm_worker.actions import Actions, Choice, Named, noop_of, plain_name
from llm_worker.config import END, FIRST, NOOP, RANDOM
from llm_worker.vector import vector_of


def actions_of(space: Mapping[str, Any] | None, listed: Any, mask: list[Any] | None, fallback: str = "") -> Actions:
    """The actions of a space: named by `listed`, limited by `mask`. ConfigError if a model cannot choose from it."""
    kind = str((space or {}).get("type", ""))
    if listed or kind == "Discrete" or (space is None and mask is not None):
        return _named(space or {}, listed, mask, fallback)
    if kind in ("MultiDiscrete", "MultiBinary", "Box"):
        return vector_of(kind, space or {})
    wanted = "Discrete, MultiDiscrete, MultiBinary or Box"
    raise ConfigError(f"action_space: a language model chooses from {wanted} spaces, not from {kind or 'nothing'}.")


def _named(space: Mapping[str, Any], listed: Any, mask: list[Any] | None, fallback: str) -> Named:
    start = int(space.get("start", 0))
    choices = _distinct([Choice(int(one["value"]), str(one.get("name", one["value"]))) for one in listed or ()])
    if not choices:
        count = int(space.get("n", 0)) or len(mask or ())
        choices = [Choice(value, str(value)) for value in range(start, start + count)]
    if fallback == NOOP and mask is None and noop_of(choices) is None:
        raise ConfigError(
            f"fallback: noop, but no action of this environment does nothing. Choose from: {RANDOM}, {FIRST}, {END}."
        )
    if mask is None:
        return Named(choices)
    return Named(choices, [one for one in choices if 0 <= one.value - start < len(mask) and mask[one.value - start]])


def _distinct(choices: list[Choice]) -> list[Choice]:
    """Two actions of one name get their numbers added."""
    names = [plain_name(choice.name) for choice in choices]
    return [
        choice if names.count(name) == 1 else Choice(choice.value, f"{choice.name} ({choice.value})")
        for choice, name in zip(choices, names, strict=True)
    ]
