"""What an evaluation's script says about its environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.operators.specs import parse_env

AUTO, AEC, PARALLEL = "auto", "aec", "parallel"


@dataclass(frozen=True)
class Wrapping:
    """A wrapper and its arguments."""

    name: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EnvChoice:
    id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[Wrapping, ...] = ()
    api: str = AUTO

    @classmethod
    def parse(cls, document: Any) -> "EnvChoice":
        """ConfigError if it is not an id, or an object with one."""
        env = parse_env(document)
        if env["kwargs"].get("render_mode", "rgb_array") != "rgb_array":
            raise ConfigError("env.kwargs.render_mode: must be rgb_array, or not given: MOSAIC shows the frames.")
        wrappers = tuple(Wrapping(one["name"], one["kwargs"]) for one in env["wrappers"])
        return cls(env["id"], env["kwargs"], wrappers, env["api"])

    def to_dict(self) -> dict[str, Any]:
        wrappers = [{"name": one.name, "kwargs": dict(one.kwargs)} for one in self.wrappers]
        return {"id": self.id, "kwargs": dict(self.kwargs), "wrappers": wrappers, "api": self.api}
