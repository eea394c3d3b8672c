"""How a worker is started as an operator, from `x-mosaic-interactive` in its schema.

    {"settings": {"extras.mode": "interactive", "extras.policy_path": "{checkpoint}", "env_id": "{env_id}"},
     "arguments": ["--interactive"],
     "env_ids": ["{env}", "gym_{env}"]}

`settings`: dotted places and values; a placeholder without a value leaves its setting out. `env_ids`: the names under
which the worker knows an environment; one without `{env}` is the only environment that it has.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic.catalog.schema import INTERACTIVE_KEY, Schema

ENV = "{env}"
ENV_KWARGS, ENV_WRAPPERS = "{env_kwargs}", "{env_wrappers}"


@dataclass(frozen=True)
class Interactive:
    """One worker's way."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    env_ids: tuple[str, ...] = (ENV,)

    @classmethod
    def of(cls, schema: Schema) -> "Interactive | None":
        """None if the worker offers no interactive mode."""
        way = schema.get(INTERACTIVE_KEY)
        if not isinstance(way, Mapping):
            return None
        return cls(
            way.get("settings", {}), tuple(way.get("arguments", ())), tuple(way.get("env_ids", ())) or cls.env_ids
        )

    def takes(self, placeholder: str) -> bool:
        return placeholder in self.settings.values()

    def is_same(self, env_id: str, own: str) -> bool:
        """Whether `own`, the worker's name of an environment, means `env_id`. `module:Id` and `Id` are the same."""
        ids = (env_id, _without_module(env_id))
        names = {*ids, *(name.replace(ENV, each) for name in self.env_ids if ENV in name for each in ids)}
        return own in names or _without_module(own) in names

    @property
    def only_envs(self) -> tuple[str, ...]:
        """The environments of a worker that cannot create any other."""
        return () if any(ENV in name for name in self.env_ids) else self.env_ids


def problem_of(way: object) -> str:
    """Why the value of the keyword cannot be used; empty if it can."""
    if not isinstance(way, Mapping):
        return "is not an object"
    unknown = sorted(set(map(str, way)) - {"settings", "arguments", "env_ids"})
    if unknown:
        return f"has the unknown key '{unknown[0]}'"
    if not isinstance(way.get("settings", {}), Mapping):
        return "has settings that are not an object"
    for name in ("arguments", "env_ids"):
        values = way.get(name, [])
        if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
            return f"has {name} that are not a list of strings"
    return ""


def _without_module(env_id: str) -> str:
    return env_id.rpartition(":")[2]
