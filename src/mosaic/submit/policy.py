"""The policy in a checkpoint: which environments and which algorithm it was trained on, as far as it is recorded."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosaic.submit.checkpoints import COMMIT, read_small

_ENV_NAMES = ("env_id", "env")
_DEEPEST = 4  # a worker writes this file, and may nest it as deeply as it likes


@dataclass(frozen=True)
class Policy:
    """What is known about it; empty: nothing."""

    env_ids: tuple[str, ...] = ()  # the current one first; those of a curriculum are several
    algo: str = ""

    @property
    def env_id(self) -> str:
        return self.env_ids[0] if self.env_ids else ""


def policy_of(checkpoint: str, in_force: Mapping[str, Any]) -> Policy:
    """From the checkpoint's own record (commit.json), else from the settings in force in its run."""
    path = Path(checkpoint)
    about = read_small(path / COMMIT if os.path.isdir(path) else path.with_name(f"{path.name}.{COMMIT}"))
    recorded = [*_texts([about.get("env_id")]), *_env_ids(about.get("settings"))]
    env_ids = recorded or [*_texts([in_force.get(name) for name in _ENV_NAMES])]
    algo = next(_texts([about.get("algo"), in_force.get("algo")]), "")
    return Policy(tuple(dict.fromkeys(env_ids)), algo)


def _env_ids(settings: Any, depth: int = _DEEPEST) -> Iterator[str]:
    """Every environment in the settings: the stages of a curriculum are in a list below `extras`."""
    if isinstance(settings, Mapping):
        yield from _texts([settings.get(name) for name in _ENV_NAMES])
    values = settings.values() if isinstance(settings, Mapping) else settings if isinstance(settings, list) else ()
    for value in values if depth else ():
        yield from _env_ids(value, depth - 1)


def _texts(values: list[Any]) -> Iterator[str]:
    yield from (value for value in values if isinstance(value, str) and value)
