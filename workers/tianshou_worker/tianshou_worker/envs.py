"""Environments: gymnasium.make, with observations as vectors."""

import os
from typing import Any

from mosaic_sdk.config import ConfigError

from tianshou_worker.config import TianshouConfig


def make_env(config: TianshouConfig) -> Any:
    """One environment. ConfigError if it cannot be created; found before torch is imported."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame must not look for a display
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import gymnasium

    try:
        env = gymnasium.make(config.env_id, **{"render_mode": "rgb_array", **config.env_kwargs})
    except (gymnasium.error.Error, ImportError, TypeError, ValueError) as error:
        raise ConfigError(f"env_id: {config.env_id} cannot be created: {error}") from None
    return env if is_vector(env.observation_space) else gymnasium.wrappers.FlattenObservation(env)


def is_vector(space: Any) -> bool:
    return len(space.shape or ()) == 1 and not hasattr(space, "nvec")
