"""The library's model: created from a config, or loaded from a checkpoint."""

import importlib
from collections.abc import Mapping
from typing import Any

from mosaic_sdk.checkpoints import Checkpoint, CheckpointError
from mosaic_sdk.cli import WorkFailed
from mosaic_sdk.config import ConfigError
from mosaic_sdk.library.settings import MOST_SEED

from stable_baselines3_worker import algorithms, checkpoint
from stable_baselines3_worker.config import AUTO, StableBaselines3Config

LINEAR = "lin_"
_SMALLEST_IMAGE = 36  # of SB3's convolutions
# What `load` can change: the others determine the shape of a network or a buffer.
CHANGEABLE = frozenset(
    {
        "action_noise",
        "batch_size",
        "clip_range",
        "clip_range_vf",
        "exploration_final_eps",
        "exploration_fraction",
        "exploration_initial_eps",
        "gae_lambda",
        "gamma",
        "gradient_steps",
        "learning_rate",
        "learning_starts",
        "max_grad_norm",
        "n_epochs",
        "normalize_advantage",
        "policy_delay",
        "target_kl",
        "target_noise_clip",
        "target_policy_noise",
        "target_update_interval",
        "tau",
        "train_freq",
        "vf_coef",
    }
)


def create(config: StableBaselines3Config, envs: Any) -> Any:
    """A new model. WorkFailed if the library refuses the environment or a hyperparameter."""
    algorithm = algorithms.find(config.algo)
    params = {name: _as_argument(algorithm, name, value, envs) for name, value in config.algo_params.items()}
    make = algorithm.load()
    try:
        return make(
            policy_name(config, envs.observation_space),
            envs,
            seed=config.seed,
            device=_device(config),
            verbose=config.verbose,
            **params,
        )
    except (AssertionError, TypeError, ValueError) as error:
        raise WorkFailed(f"{config.algo} on {config.env_id}: {error}") from error


def load(config: StableBaselines3Config, path: str, envs: Any = None, changes: Mapping[str, Any] | None = None) -> Any:
    """The model in a checkpoint. `changes`: hyperparameters that a resumed training sets anew."""
    algorithm = algorithms.find(config.algo)
    new = {name: _as_argument(algorithm, name, value, envs) for name, value in (changes or {}).items()}
    try:
        return algorithm.load().load(path, env=envs, device=_device(config), **new)
    except (AssertionError, KeyError, ValueError, RuntimeError, EOFError) as error:
        raise CheckpointError(f"{path} cannot be loaded: {error}. Use another checkpoint.") from error


def resume(config: StableBaselines3Config, start: Checkpoint, envs: Any) -> Any:
    """The model in a checkpoint, to be trained on with random numbers that it has not used yet."""
    saved = type(config).from_dict({**start.settings, "run_id": config.run_id}).algo_params
    changes = {name: value for name, value in config.algo_params.items() if value != saved.get(name)}
    fixed = sorted(set(changes) - CHANGEABLE)
    if fixed:
        raise ConfigError(
            f"extras.algo_params.{fixed[0]}: cannot be changed when a training is resumed. Start a new run with it, "
            f"or leave it out. These can be changed: {', '.join(sorted(CHANGEABLE))}."
        )
    model = load(config, checkpoint.part(start, checkpoint.MODEL), envs, changes)
    model.set_random_seed((config.seed + model.num_timesteps) % MOST_SEED)
    buffer = checkpoint.part(start, checkpoint.BUFFER)
    if buffer:
        model.load_replay_buffer(buffer)
    return model


def policy_name(config: StableBaselines3Config, space: Any) -> str:
    """What `policy` says; for auto the kind that fits the observations."""
    if config.policy != AUTO:
        return config.policy
    from gymnasium import spaces
    from stable_baselines3.common.preprocessing import is_image_space

    if isinstance(space, spaces.Dict):
        kind = "MultiInput"
    elif is_image_space(space) and sorted(space.shape)[-2] >= _SMALLEST_IMAGE:
        kind = "Cnn"
    else:
        kind = "Mlp"
    return f"{kind}LstmPolicy" if algorithms.find(config.algo).is_recurrent else f"{kind}Policy"


def _device(config: StableBaselines3Config) -> str:
    import torch

    torch.set_num_threads(config.num_threads)
    return config.device


def _as_argument(algorithm: algorithms.Algorithm, name: str, value: Any, envs: Any) -> Any:
    """A value of the config as the constructor takes it: JSON has no tuples, functions or classes."""
    if name == "action_noise" and value is not None:
        import numpy as np
        from stable_baselines3.common.noise import NormalActionNoise

        size = envs.action_space.shape
        return NormalActionNoise(np.zeros(size), np.full(size, float(value)))
    if name in ("learning_rate", "clip_range", "clip_range_vf") and isinstance(value, str):
        return _schedule(name, value)
    if name == "policy_kwargs" and value and isinstance(value.get("activation_fn"), str):
        return {**value, "activation_fn": _activation(algorithm, value["activation_fn"])}
    return tuple(value) if isinstance(value, list) else value


def _schedule(name: str, text: str) -> Any:
    from stable_baselines3.common.utils import LinearSchedule

    try:
        start = float(text.removeprefix(LINEAR)) if text.startswith(LINEAR) else float("")
    except ValueError:
        raise ConfigError(
            f"extras.algo_params.{name}: {text!r} is neither a number nor {LINEAR} and a number, as in {LINEAR}3e-4."
        ) from None
    return LinearSchedule(start, 0.0, 1.0)


def _activation(algorithm: algorithms.Algorithm, name: str) -> Any:
    functions = importlib.import_module("flax.linen" if algorithm.is_jax else "torch.nn")
    found = getattr(functions, name, None)
    if not callable(found):
        raise ConfigError(f"extras.algo_params.policy_kwargs.activation_fn: {functions.__name__} has no {name}.")
    return found
