"""What a training reports: the library's own metrics, and episodes as its Monitor counts them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from mosaic_sdk import emit
from stable_baselines3.common.logger import KVWriter


class Metrics(KVWriter):
    """An output of the library's logger: the same names and values as in TensorBoard."""

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        values = {
            name: float(value)
            for name, value in key_values.items()
            if "tensorboard" not in (key_excluded.get(name) or ()) and _is_number(value)
        }
        if values:
            emit.metrics(values, step)

    def close(self) -> None:
        pass


def ended_episodes(infos: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The episodes that end in a step of the VecEnv."""
    for place, info in enumerate(infos):
        end = info.get("episode")
        if end is not None:
            truncated = bool(info.get("TimeLimit.truncated"))
            ends = {"terminated": not truncated, "truncated": truncated}
            yield {"total_reward": end["r"], "length": end["l"], "env_index": place, **ends}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
