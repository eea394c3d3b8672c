"""XuanCe's objects for a config: its arguments, its environments, its agent. The only importer of xuance."""

import os
from argparse import Namespace
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from mosaic_sdk.config import ConfigError
from mosaic_sdk.library.saving import run_folder
from mosaic_sdk.library.training import TENSORBOARD

from xuance_worker import fastlane, mpe, presets
from xuance_worker.algorithms import ALGORITHMS
from xuance_worker.config import AUTO, CUDA, XuanceConfig
from xuance_worker.families import MPE


class Setup(NamedTuple):
    """What a training, an evaluation or a player needs of XuanCe."""

    agent: Any
    envs: Any
    preset: str  # XuanCe's file of settings, below its folder `configs`


def build(config: XuanceConfig, *, parallels: int | None = None, env_seed: int = 0, callback: Any = None) -> Setup:
    """Create the environments and the agent. ConfigError for what XuanCe or the environment cannot do."""
    prepare_process()
    require_env(config)
    path = presets.find(config.algo, config.family, config.env_id, _is_continuous(config))
    from xuance.common import get_arguments
    from xuance.environment import make_envs
    from xuance.torch.agents import REGISTRY_Agents

    overrides = SimpleNamespace(**_overrides(config, parallels or config.parallels, env_seed))
    arguments = get_arguments(config.algo, config.family, config.env_id, config_path=str(path), parser_args=overrides)
    envs = make_envs(arguments)
    _separate_unlike_agents(arguments, envs, config.algo_params)
    arguments.observation_space, arguments.action_space = envs.observation_space, envs.action_space
    agent = REGISTRY_Agents[arguments.agent](arguments, envs, callback=callback)
    return Setup(agent, envs, str(path.relative_to(presets.root())))


def prepare_process() -> None:
    """What has to be set before XuanCe and pygame are imported."""
    # Its progress bar would fill the log; it cannot be disabled, because XuanCe reads its counter.
    os.environ.setdefault("TQDM_MININTERVAL", "600")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    fastlane.show_frames()
    mpe.offer()


def require_env(config: XuanceConfig) -> None:
    """ConfigError if there is no such environment; found before torch is imported."""
    if config.family == MPE:
        import importlib.util

        if importlib.util.find_spec(f"{mpe.NEW}.{config.env_id}") is None:
            raise ConfigError(f"env_id: mpe2 has no environment {config.env_id!r}. One that it has: simple_spread_v3.")
        return
    import gymnasium

    try:
        gymnasium.spec(config.env_id)
    except (gymnasium.error.Error, ImportError) as error:
        raise ConfigError(f"env_id: {config.env_id!r} cannot be made: {error}") from None


def device_of(config: XuanceConfig) -> str:
    """The device in XuanCe's words. ConfigError if a GPU is required and there is none."""
    import torch

    has_gpu = bool(os.environ.get("CUDA_VISIBLE_DEVICES", "all")) and torch.cuda.is_available()
    if config.device == CUDA and not has_gpu:
        raise ConfigError("extras.device: this run has no GPU. Request one with --gpus 1, or set device=cpu.")
    return "cuda:0" if has_gpu and config.device in (AUTO, CUDA) else "cpu"


def _overrides(config: XuanceConfig, parallels: int | None, env_seed: int) -> dict[str, Any]:
    is_many = ALGORITHMS[config.algo].is_multi_agent
    values: dict[str, Any] = {
        **presets.checked(config.algo, config.algo_params),
        **dict(ALGORITHMS[config.algo].changes),
        "env_id": config.env_id,
        "seed": config.seed,
        "env_seed": env_seed,
        "running_steps": config.total_timesteps,
        "device": device_of(config),
        "logger": "tensorboard",
        "log_dir": os.path.join(run_folder(), TENSORBOARD),
        "model_dir": os.path.join(run_folder(), "models"),  # never used: checkpoints are the worker's own
        # All in this process: no process is left behind, and frames can be shown.
        "vectorize": "DummyVecMultiAgentEnv" if is_many else "DummyVecEnv",
        "render": False,
        "render_mode": "rgb_array",
        "distributed_training": False,
        "use_tensor_memory": False,
    }
    return {**values, "parallels": parallels} if parallels else values


def _is_continuous(config: XuanceConfig) -> bool | None:
    """The kind of an environment's actions; None for MPE, where `continuous_action` chooses it."""
    if config.family == MPE:
        return None
    import gymnasium

    env = gymnasium.make(config.env_id)
    try:
        # XuanCe itself makes this one discrete.
        return isinstance(env.action_space, gymnasium.spaces.Box) and config.env_id != "CarRacing-v3"
    finally:
        env.close()


def _separate_unlike_agents(arguments: Namespace, envs: Any, params: Mapping[str, Any]) -> None:
    """Agents with different spaces cannot share one network, which is the default in XuanCe's files."""
    if not isinstance(envs.observation_space, dict) or "use_parameter_sharing" in params:
        return
    observations, actions = list(envs.observation_space.values()), list(envs.action_space.values())
    if any(one.shape != observations[0].shape for one in observations) or any(one != actions[0] for one in actions):
        arguments.use_parameter_sharing = False
