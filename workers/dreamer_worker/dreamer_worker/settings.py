"""The settings stored with a run's checkpoints, so that a run that continues or plays one need not repeat them.

checkpoints/settings.json                 {"version": 1, "env": …, "size": …, "batch_length": …}
checkpoints/epoch-00000007/commit.json    {…, "settings": {"env": …, …}}: an epoch that was copied elsewhere has them
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.files import read_json, write_json
from mosaic_sdk.names import CHECKPOINTS, COMMIT_FILE

if TYPE_CHECKING:
    from dreamer_worker.config import DreamerConfig

NAME = "settings.json"
SHAPE = ("size", "random_agent")  # with another value the agent is another one, and the weights do not fit
KEPT = (
    *("env", "env_options", "suite", "agent", *SHAPE),
    *("steps", "envs", "eval_envs", "train_ratio", "batch_size", "batch_length", "report_length"),
    *("replay_gb", "replay_disk_gb", "replay_shares", "online"),
)


def kept(config: DreamerConfig) -> dict[str, Any]:
    """The settings that are stored."""
    return {name: getattr(config, name) for name in KEPT}


def keep(config: DreamerConfig) -> None:
    """Store them, before the first checkpoint."""
    write_json(Path(config.checkpoint_dir) / NAME, {"version": 1, **kept(config)})


def inherit(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a config, with those of its `checkpoint` where the config has none."""
    if not given.get("checkpoint") or not isinstance(given["checkpoint"], str):
        return dict(given)
    stored = of_checkpoint(given["checkpoint"])
    for name in SHAPE:
        if given.get(name) and name in stored and given[name] != stored[name]:
            raise ConfigError(
                f"{name}: the checkpoint's agent was made with {stored[name]}, not {given[name]}. Remove this setting."
            )
    return {
        **{name: stored[name] for name in KEPT if name in stored},
        **given,
        "checkpoint": str(find(given["checkpoint"])),
    }


def of_checkpoint(checkpoint: str) -> dict[str, Any]:
    """The settings stored with a checkpoint; none for weights that were copied without them."""
    place = find(checkpoint)
    for folder in (place, place.parent, place.parent.parent):  # of all epochs, of one, of a file in it
        if (folder / NAME).is_file():
            return _read(folder / NAME)
        if (folder / COMMIT_FILE).is_file() and (stored := _read(folder / COMMIT_FILE).get("settings")):
            return dict(stored)
    return {}


def find(checkpoint: str) -> Path:
    """The path of a checkpoint: a run's folder stands for the checkpoints in it."""
    given = Path(checkpoint).expanduser()
    return given / CHECKPOINTS if (given / CHECKPOINTS).is_dir() else given


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except ValueError:
        raise ConfigError(
            f"checkpoint: {path} is damaged. Remove it, and set env, size and the other settings again."
        ) from None
