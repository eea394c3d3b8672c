"""Builds a script's command line from a run's config and checks every value against the script's own parser."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from mosaic_sdk.config import ConfigError

from cleanrl_worker.config import CleanRLWorkerConfig, nearest
from cleanrl_worker.upstream import Flag, Script

# Flags that the run's own settings fill in. A hyperparameter of that name would set them twice.
OWN = ("env_id", "total_timesteps", "seed", "cuda", "track", "capture_video")
_PLACES = {"env_id": "env_id", "total_timesteps": "total_timesteps", "seed": "seed", "track": "extras.track_wandb"}

# name: (minimum or None, maximum or None, whether the minimum itself is excluded)
_RANGES: dict[str, tuple[Any, Any, bool]] = {
    **dict.fromkeys(("learning_rate", "policy_lr", "q_lr"), (0, None, True)),
    **dict.fromkeys(("gamma", "gae_lambda", "tau", "start_e", "end_e", "exploration_fraction"), (0, 1, False)),
    **dict.fromkeys(
        [
            "num_envs",
            "num_steps",
            "num_minibatches",
            "update_epochs",
            "batch_size",
            "buffer_size",
            "n_atoms",
            "train_frequency",
            "target_network_frequency",
            "policy_frequency",
            "n_iteration",
            "e_policy",
            "e_auxiliary",
            "num_aux_rollouts",
            "n_step",
            "n_quantiles",
            "window",
            "trxl_layers",
            "trxl_dim",
            "trxl_heads",
        ],
        (1, None, False),
    ),
    **dict.fromkeys(("q_lambda", "priority_alpha", "priority_beta", "teacher_epsilon"), (0, 1, False)),
    **dict.fromkeys(("temperature", "entropy_tau"), (0, None, True)),
    **dict.fromkeys(("teacher_steps", "offline_steps", "noise"), (0, None, False)),
    **dict.fromkeys(("learning_starts", "exploration_noise", "policy_noise", "noise_clip"), (0, None, False)),
    **dict.fromkeys(("clip_coef", "max_grad_norm", "target_kl", "alpha"), (0, None, False)),
}
_KINDS: dict[str, tuple[Any, str]] = {
    "integer": (int, "an integer"),
    "number": ((int, float), "a number"),
    "boolean": (bool, "true or false"),
    "string": (str, "a string"),
}


def range_of(name: str) -> dict[str, Any]:
    """The range of a hyperparameter, as JSON Schema keywords."""
    least, most, is_open = _RANGES.get(name, (None, None, False))
    found = {"exclusiveMinimum" if is_open else "minimum": least, "maximum": most}
    return {key: value for key, value in found.items() if value is not None}


def resolve(config: CleanRLWorkerConfig, script: Script) -> dict[str, Any]:
    """Every flag of the script with its value in this run; ConfigError for a value that the script does not accept."""
    if not {"env_id", "total_timesteps"} <= set(script.flags):
        raise ConfigError(f"algo: {script.path} has no parse_args() and no class Args with env_id and total_timesteps.")
    values = {name: flag.default for name, flag in script.flags.items()}
    for name, value in config.algo_params.items():
        is_direct = name in config.direct_params
        values[name] = _checked(name, value, script.flags, config.algo, is_direct)
    own = {
        "env_id": config.env_id,
        "total_timesteps": config.total_timesteps,
        "seed": values.get("seed") if config.seed is None else config.seed,
        "cuda": config.cuda,
        "track": config.track_wandb,
        "capture_video": config.capture_video,
    }
    values.update({name: value for name, value in own.items() if name in values})
    _check_batch(values, config.algo)
    return values


def steps_in_all(values: Mapping[str, Any]) -> int:
    """The step at which the training ends: scripts that learn from batches only run complete batches."""
    total = int(values["total_timesteps"])
    if "num_steps" not in values or "num_envs" not in values:
        return total
    turn = int(
        values["num_envs"] * values["num_steps"] * values.get("n_iteration", 1)
    )  # PPG collects several batches per iteration
    return total // turn * turn


def differences(values: Mapping[str, Any], script: Script) -> dict[str, Any]:
    """The values that differ from the script's own defaults."""
    return {name: value for name, value in values.items() if value != script.flags[name].default}


def command_line(values: Mapping[str, Any], script: Script) -> list[str]:
    """The differences as flags; the script fills in its own defaults."""
    argv: list[str] = []
    for name, value in differences(values, script).items():
        texts = [str(part) for part in value] if isinstance(value, (list, tuple)) else [str(value)]
        flag = name.replace("_", "-")
        argv += [f"--{flag}" if value else f"--no-{flag}"] if script.flags[name].is_switch else [f"--{flag}", *texts]
    return argv


def require_known(config: CleanRLWorkerConfig, flags: Collection[str]) -> None:
    """ConfigError if a key in `extras` is neither a setting of the worker nor one of these hyperparameters."""
    for name in config.direct_params:
        if name not in flags:
            hint = nearest(name, {*config.extras_names(), *flags})
            raise ConfigError(f"extras.{name}: neither the worker nor any algorithm has this setting. {hint}".rstrip())


def _checked(name: str, value: Any, flags: Mapping[str, Flag], algo: str, is_direct: bool = False) -> Any:
    where = f"extras.{name}" if is_direct else f"extras.algo_params.{name}"
    if name in OWN:
        raise ConfigError(f"{where}: set it as {_PLACES.get(name, 'extras.' + name)} instead.")
    flag = flags.get(name)
    if flag is None:
        own = sorted(set(flags) - set(OWN))
        hint = (
            nearest(name, {*own, *CleanRLWorkerConfig.extras_names()} if is_direct else own)
            or f"It has: {', '.join(own)}."
        )
        what = "the worker has no such setting, and " if is_direct else ""
        raise ConfigError(f"{where}: {what}{algo} has no such hyperparameter. {hint}")
    if value is None and flag.default is None:
        return None
    if flag.takes_many:
        return list(value) if isinstance(value, (list, tuple)) else [value]
    if flag.choices and value not in flag.choices:
        hint = nearest(str(value), flag.choices)
        raise ConfigError(f"{where}: must be one of {', '.join(flag.choices)}, not {value!r}. {hint}".rstrip())
    return _in_range(_of_kind(value, flag, where), name, where)


def _of_kind(value: Any, flag: Flag, where: str) -> Any:
    kind, description = _KINDS[flag.kind]
    if flag.kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and flag.kind != "boolean"):
        raise ConfigError(f"{where}: must be {description}, not {value!r}.")
    return value


def _in_range(value: Any, name: str, where: str) -> Any:
    least, most, is_open = _RANGES.get(name, (None, None, False))
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where}: must be a finite number, not {value!r}.")
    if least is not None and (value < least or (is_open and value == least)):
        raise ConfigError(f"{where}: must be {'more than' if is_open else 'at least'} {least}, not {value!r}.")
    if most is not None and value > most:
        raise ConfigError(f"{where}: must be at most {most}, not {value!r}.")
    return value


def _check_batch(values: Mapping[str, Any], algo: str) -> None:
    """PPO and similar scripts learn from complete batches. With less than one they would silently train nothing."""
    if "num_steps" not in values or "num_envs" not in values:
        return
    batch = values["num_steps"] * values["num_envs"]
    if values["total_timesteps"] < batch:
        raise ConfigError(
            f"total_timesteps: {values['total_timesteps']} is less than one batch of {algo}, which is "
            f"num_envs × num_steps = {values['num_envs']} × {values['num_steps']} = {batch}. Nothing would be trained."
        )
    if values.get("num_minibatches", 1) > batch:
        raise ConfigError(
            f"extras.algo_params.num_minibatches: a batch of {batch} steps cannot be split into "
            f"{values['num_minibatches']}."
        )
