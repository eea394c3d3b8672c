"""gym 0.23's API for CleanRL's older scripts, over Gymnasium 0.29, so that frames, wrappers and newer envs work there.

The parent of this folder comes first on the path of those scripts only: Procgen and envpool need the real gym.
Single envs and wrappers are Gymnasium's (wrappers.py has a faster version of one of them). The differences between the
two APIs are handled in one place, the vector env, because all of these scripts step their envs through
`gym.vector.SyncVectorEnv`:

    env.seed(seed)        is stored and passed to the env's first reset(seed=…)
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
    """Gymnasium's make. When videos are requested, the env can render, as every env of gym 0.23 could."""
    if os.environ.get("CLEANRL_CAPTURE_VIDEO") == "1":
        options.setdefault("render_mode", "rgb_array")
    return gymnasium.make(env_id, **options)


def _remember_seed(env: "gymnasium.Env[Any, Any]", seed: Any = None) -> Any:
    vector.remember_seed(env, seed)
    return [seed]


# On the class, because scripts call it on the outermost wrapper, whichever it is.
gymnasium.Env.seed = _remember_seed  # type: ignore[attr-defined]
