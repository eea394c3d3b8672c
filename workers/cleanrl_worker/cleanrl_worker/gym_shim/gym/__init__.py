"""gym 0.23 as CleanRL's older scripts call it, over Gymnasium 0.29: so frames, wrappers and newer envs work there too.

This folder's parent is put first on the path of those scripts, and only of those: Procgen and envpool need real gym.
Single envs and wrappers are Gymnasium's (one of them made quicker, in wrappers.py); what differs between the two APIs
is turned around in one place, the vector env, because every one of these scripts steps its envs through
`gym.vector.SyncVectorEnv`:

    env.seed(seed)        is remembered, and given to the env's first reset(seed=…)
    obs = envs.reset()
    obs, rewards, dones, infos = envs.step(actions)     infos: one dict per env
"""

import os
from typing import Any

import gymnasium
from gymnasium import (
    ActionWrapper,
    Env,
    ObservationWrapper,
    RewardWrapper,
    Wrapper,
    envs,
    error,
    logger,
    register,
    spaces,
    spec,
)

from gym import vector, wrappers

__version__ = "0.23.1"
__all__ = [
    "ActionWrapper",
    "Env",
    "ObservationWrapper",
    "RewardWrapper",
    "Wrapper",
    "envs",
    "error",
    "logger",
    "make",
    "register",
    "spaces",
    "spec",
    "vector",
    "wrappers",
]


def make(env_id: str, **options: Any) -> "gymnasium.Env[Any, Any]":
    """Gymnasium's make; able to render when videos are asked for, which gym 0.23 was without being told."""
    if os.environ.get("CLEANRL_CAPTURE_VIDEO") == "1":
        options.setdefault("render_mode", "rgb_array")
    return gymnasium.make(env_id, **options)


def _remember_seed(env: "gymnasium.Env[Any, Any]", seed: Any = None) -> Any:
    vector.remember_seed(env, seed)
    return [seed]


# On the class, because scripts call it on whatever wrapper is outermost.
gymnasium.Env.seed = _remember_seed  # type: ignore[attr-defined]
