"""An agent that acts at random and learns nothing: the processes without JAX, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dreamer_worker.agent.spaces import Space, Spaces

LATENT = 8


class RandomAgent:
    """The agent's interface. It only remembers how often it was called, so that tests can check a checkpoint."""

    def __init__(self, obs_space: Spaces, act_space: Spaces, seed: int = 0) -> None:
        self.obs_space, self.act_space = obs_space, act_space
        self.ext_space: Spaces = {"dyn/deter": Space("float16", (LATENT,))}
        self.needs_first: dict[str, int] = {}
        self.updates = 0
        self._rng = np.random.default_rng(seed)

    def init_policy(self, batch: int) -> dict[str, Any]:
        return {"asked": np.zeros(batch, np.int64)}

    def policy(
        self, carry: Any, obs: Mapping[str, Any], mode: str = "train"
    ) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """`asked` counts the steps of an episode, as a recurrent state would."""
        asked = np.where(obs["is_first"], 0, carry["asked"]) + 1
        count = len(asked)
        actions = {key: space.sample(self._rng, count) for key, space in self.act_space.items()}
        return {"asked": asked}, actions, {"dyn/deter": np.repeat(asked[:, None], LATENT, 1).astype(np.float16)}

    def init_train(self, batch: int) -> Any:
        return {}

    def stage(self, data: Mapping[str, Any], updates: int = 1) -> Mapping[str, Any]:
        return data

    def train(self, carry: Any, data: Mapping[str, Any]) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        self.updates += 1
        ids = data["stepid"][:, 1:]
        outs = {"dyn/deter": np.asarray(data["dyn/deter"][:, 1:]), "priority": np.ones(ids.shape), "stepid": ids}
        return carry, outs, {"loss/total": np.float32(1 / self.updates)}

    init_report = init_train

    def report(self, carry: Any, data: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        clips = {f"open_loop/{key}": data[key][0] for key, space in self.obs_space.items() if space.is_image}
        return carry, {"loss/total": np.float32(0), **clips}

    def params_for_policy(self) -> None:
        pass

    def save(self) -> dict[str, np.ndarray]:
        return {"updates": np.asarray(self.updates)}

    def freeze(self) -> Callable[[], dict[str, np.ndarray]]:
        saved = self.save()
        return lambda: saved

    def load(self, saved: Mapping[str, np.ndarray]) -> None:
        self.updates = int(saved["updates"])
