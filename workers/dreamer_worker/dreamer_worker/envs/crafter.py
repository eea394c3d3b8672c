"""Crafter, as its authors publish it: 64 × 64 pixels, 17 actions; achievements are logged."""

from __future__ import annotations

from typing import Any

import numpy as np

from dreamer_worker.agent.spaces import Space, Spaces
from dreamer_worker.envs import Action, Obs, observe
from dreamer_worker.envs.library import library, no_such_env

TASKS = ("crafter_reward", "crafter_noreward")


def make(name: str, seed: int | None = None, suite: str = "", size: tuple[int, int] = (64, 64)) -> Crafter:
    return Crafter(name, seed, size)


class Crafter:
    """`reward` or `noreward`. Its time limit (10,000 steps) is a truncation: is_terminal stays false there."""

    def __init__(self, name: str, seed: int | None, size: tuple[int, int]) -> None:
        crafter = library("crafter", "crafter")
        if f"crafter_{name}" not in TASKS:
            raise no_such_env(f"crafter_{name}", TASKS)
        self._env = crafter.Env(size=tuple(size), reward=name == "reward", seed=seed)
        self._names = crafter.constants.achievements
        self.obs_space: Spaces = {"image": Space("uint8", (*size, 3))}
        self.act_space: Spaces = {"action": Space("int32", (), 0, int(self._env.action_space.n))}

    def reset(self) -> Obs:
        return observe({"image": self._env.reset()}, first=True) | self._achieved({})

    def step(self, action: Action) -> Obs:
        image, reward, done, info = self._env.step(int(action["action"]))
        achieved = self._achieved(info["achievements"] if done else {})
        return observe({"image": image}, reward, last=done, terminal=info["discount"] == 0) | achieved

    def render(self) -> np.ndarray | None:
        return np.asarray(self._env.render((256, 256)))

    def close(self) -> None:
        pass

    def _achieved(self, counts: dict[str, Any]) -> Obs:
        """The achievements of the episode with its last step, zeros before: the keys are always there."""
        return {f"log/achievement_{name}": np.float32(counts.get(name, 0) > 0) for name in self._names}
