"""What a run was made with, beside its checkpoints: who goes on from one, or plays it, need not say it again.

checkpoints/settings.json    {"version": 1, "env": …, "size": …, "batch_length": …}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic_sdk.config import ConfigError

from dreamer_worker.checkpoint import read_json, write_json

if TYPE_CHECKING:
    from dreamer_worker.config import DreamerConfig

NAME = "settings.json"
SHAPE = ("size", "random_agent")  # another one is another agent: what was learned would not fit
KEPT = (
    *("env", "env_options", "suite", "agent", *SHAPE),
    *("steps", "envs", "eval_envs", "train_ratio", "batch_size", "batch_length", "report_length"),
    *("replay_gb", "replay_shares", "online"),
)


def keep(config: DreamerConfig) -> None:
    """Write them down, before the first checkpoint."""
    folder = Path(config.checkpoint_dir)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / NAME, {"version": 1, **{name: getattr(config, name) for name in KEPT}})


def inherit(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a config, and those that its `checkpoint` was made with where it does not say otherwise."""
    if not asked.get("checkpoint") or not isinstance(asked["checkpoint"], str):
        return dict(asked)
    kept = of_checkpoint(asked["checkpoint"])
    for name in SHAPE:
        if asked.get(name) and name in kept and asked[name] != kept[name]:
            raise ConfigError(
                f"{name}: the checkpoint's agent was made with {kept[name]}, not {asked[name]}. Leave it out."
            )
    return {
        **{name: kept[name] for name in KEPT if name in kept},
        **asked,
        "checkpoint": str(find(asked["checkpoint"])),
    }


def of_checkpoint(checkpoint: str) -> dict[str, Any]:
    """The settings that lie beside a checkpoint; none beside one that was taken out of its folder."""
    place = find(checkpoint)
    for folder in (place, place.parent, place.parent.parent):  # of all epochs, of one, of a file in it
        if (folder / NAME).is_file():
            return _read(folder / NAME)
    return {}


def find(checkpoint: str) -> Path:
    """Where it is: a run's folder stands for the checkpoints in it."""
    given = Path(checkpoint).expanduser()
    return given / "checkpoints" if (given / "checkpoints").is_dir() else given


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except ValueError:
        raise ConfigError(f"checkpoint: {path} is damaged. Remove it, and say env, size and the like again.") from None
