"""MiniGrid: the part of the grid that the agent sees, as an image of 64 × 64 pixels or as the grid's own numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dreamer_worker.agent.spaces import Space
from dreamer_worker.envs import Obs
from dreamer_worker.envs.gymnasium import Gymnasium
from dreamer_worker.envs.library import library, no_such_env


def make(
    name: str, seed: int | None = None, suite: str = "", pixels: bool = True, size: tuple[int, int] = (64, 64)
) -> Gymnasium:
    import gymnasium

    see: Callable[[Any], Any] = library("minigrid.wrappers", "minigrid").RGBImgPartialObsWrapper
    if name not in gymnasium.registry:
        grids = [known for known in gymnasium.registry if known.startswith(("MiniGrid-", "BabyAI-"))]
        raise no_such_env(f"minigrid_{name}", [f"minigrid_{known}" for known in grids])
    env: Any = gymnasium.make(name, render_mode="rgb_array")
    return Gymnasium(see(env), seed, size) if pixels else Grid(env, seed)


class Grid(Gymnasium):
    """The 7 × 7 cells around the agent as plain numbers: kind, colour, state."""

    def __init__(self, env: Any, seed: int | None) -> None:
        super().__init__(env, seed)
        self.obs_space = {"cells": Space("float32", (147,)), "direction": Space("int32", (), 0, 4)}

    def _read(self, sensed: Any) -> Obs:
        return {
            "cells": sensed["image"].reshape(-1).astype(np.float32),
            "direction": np.int32(sensed["direction"]),
        }
