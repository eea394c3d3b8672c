"""The environments of a training or an evaluation: gymnasium.make, a wrapper by env_id, and SB3's VecEnv."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mosaic_sdk.config import ConfigError

from stable_baselines3_worker.config import ATARI, AUTO, MINIGRID, NONE, SUBPROC, StableBaselines3Config


def wrapper_of(config: StableBaselines3Config) -> str:
    if config.env_wrapper != AUTO:
        return config.env_wrapper
    if config.env_id.startswith("ALE/") or "NoFrameskip" in config.env_id:
        return ATARI
    return MINIGRID if config.env_id.startswith(("MiniGrid-", "BabyAI-")) else NONE


def make_envs(config: StableBaselines3Config, normalizer: str = "", count: int = 0, video: bool = False) -> Any:
    """A VecEnv of `n_envs` environments, or of `count`. `normalizer`: the statistics in a checkpoint, used unchanged
    unless a training continues with them."""
    _require(config)
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack, VecNormalize

    makers = [_maker(config, rank, video) for rank in range(count or config.n_envs)]
    envs: Any = SubprocVecEnv(makers) if config.vec_env == SUBPROC and len(makers) > 1 else DummyVecEnv(makers)
    envs.seed(config.seed)
    if config.frame_stack > 1:
        envs = VecFrameStack(envs, config.frame_stack)
    if not config.normalize:
        return envs
    gamma = config.algo_params.get("gamma", 0.99)
    return VecNormalize.load(normalizer, envs) if normalizer else VecNormalize(envs, gamma=gamma)


def make_env(config: StableBaselines3Config) -> Any:
    """One environment without any wrapper of ours. Does not import torch."""
    _require(config)
    import gymnasium

    return gymnasium.make(config.env_id, render_mode=_render_mode(config.env_id), **_arguments(config))


def freeze(envs: Any) -> Any:
    """Keep the statistics of VecNormalize as they are, and the rewards as the environment gives them."""
    from stable_baselines3.common.vec_env import unwrap_vec_normalize

    normalize = unwrap_vec_normalize(envs)
    if normalize is not None:
        normalize.training = normalize.norm_reward = False
    return envs


def _require(config: StableBaselines3Config) -> None:
    """ConfigError for an unknown environment, before the seconds that importing torch takes."""
    # Frames are rendered in memory: pygame must not look for a display.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import gymnasium

    _register(config)
    try:
        gymnasium.spec(config.env_id)
    except (gymnasium.error.Error, ImportError, ValueError) as error:
        raise ConfigError(f"env_id: {error}") from None


def _register(config: StableBaselines3Config) -> None:
    """Packages whose environments Gymnasium does not find by itself."""
    import gymnasium

    if wrapper_of(config) == ATARI:
        import ale_py

        gymnasium.register_envs(ale_py)
    elif wrapper_of(config) == MINIGRID:
        import minigrid

        gymnasium.register_envs(minigrid)


def _maker(config: StableBaselines3Config, rank: int, video: bool) -> Callable[[], Any]:
    def make() -> Any:
        from stable_baselines3.common.monitor import Monitor

        if multiprocessing.parent_process() is not None:
            # The training's process saves a checkpoint after SIGTERM and then ends this one.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        env = make_env(config)
        if video:
            import gymnasium

            env = gymnasium.wrappers.RecordVideo(
                env, str(Path("videos").resolve()), episode_trigger=lambda index: True, disable_logger=True
            )
        env.action_space.seed(config.seed + rank)
        # Below the wrapper, so that returns are those of the whole game and not clipped.
        return _wrapped(Monitor(env), wrapper_of(config))

    return make


def _render_mode(env_id: str) -> str | None:
    """rgb_array where the environment has it, for frames and videos. Nothing is rendered until someone looks."""
    import gymnasium

    entry: Any = gymnasium.spec(env_id).entry_point
    creator = gymnasium.envs.registration.load_env_creator(entry) if isinstance(entry, str) else entry
    return "rgb_array" if "rgb_array" in getattr(creator, "metadata", {}).get("render_modes", ()) else None


def _arguments(config: StableBaselines3Config) -> dict[str, Any]:
    # AtariWrapper skips frames itself.
    skips = {"frameskip": 1} if config.env_id.startswith("ALE/") and wrapper_of(config) == ATARI else {}
    return {**skips, **config.env_kwargs}


def _wrapped(env: Any, wrapper: str) -> Any:
    if wrapper == ATARI:
        from stable_baselines3.common.atari_wrappers import AtariWrapper

        return AtariWrapper(env)
    if wrapper == MINIGRID:
        from minigrid.wrappers import ImgObsWrapper

        return ImgObsWrapper(env)
    return env
