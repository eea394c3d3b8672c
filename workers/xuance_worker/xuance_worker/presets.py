"""XuanCe's own settings: the YAML files in its package, read without importing it.

    configs/basic.yaml                               for all
    configs/ppo/classic_control/CartPole-v1.yaml     for one algorithm and one environment
    configs/ppo/mujoco.yaml                          for one algorithm and one family

An environment without a file gets that of another environment of its family, or of another family, with the same kind
of actions.
"""

import importlib.util
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.library.settings import nearest

from xuance_worker.algorithms import ALGORITHMS, Algorithm
from xuance_worker.families import BOX2D, CLASSIC, MPE, MUJOCO

# What the run's own settings fill in, and what belongs to ways of running that this worker does not have.
OWN = {
    *("agent", "clip_type", "device", "distributed_training", "dl_toolbox", "env_id"),
    *("env_name", "env_seed", "eval_interval", "fps", "img_size", "learner"),
    *("log_dir", "logger", "master_port", "model_dir", "noop_max", "num_stack"),
    *("obs_type", "parallels", "policy", "project_name", "render", "render_mode"),
    *("runner", "running_steps", "seed", "test_episode", "test_mode", "use_tensor_memory"),
    *("vectorize", "wandb_user_name"),
}
_CONTINUOUS = ("Pendulum-v1", "BipedalWalker-v3", "mujoco")  # the names of files


def find(algo: str, family: str, env_id: str, is_continuous: bool | None) -> Path:
    """The file for an algorithm and an environment. `is_continuous`: its actions; None where files do not differ."""
    algorithm = ALGORITHMS[algo]
    folder = root() / algorithm.settings_folder
    exact = (folder / family / f"{env_id}.yaml", folder / f"{family}.yaml")
    others = [path for path in files(algorithm) if is_continuous in (None, path.stem in _CONTINUOUS)]
    near = sorted(
        others, key=lambda path: (family not in (path.stem, path.parent.name), path.stem != "simple_spread_v3")
    )
    found = next((path for path in (*exact, *near) if path.is_file()), None)
    if found is None:
        kind = "continuous" if is_continuous else "discrete"
        raise ConfigError(
            f"algo: XuanCe has no settings of {algo} for {kind} actions, which {env_id} has. Choose another."
        )
    return found


def files(algorithm: Algorithm) -> list[Path]:
    """All files of an algorithm for the environments that this worker has."""
    folder = root() / algorithm.settings_folder
    families = (MPE,) if algorithm.is_multi_agent else (CLASSIC, BOX2D, MUJOCO)
    found = [path for family in families for path in sorted((folder / family).glob("*.yaml"))]
    return found + [path for path in (folder / f"{family}.yaml" for family in families) if path.is_file()]


@cache
def hyperparameters(algo: str) -> dict[str, list[Any]]:
    """The names that `algo_params` takes, each with its different defaults."""
    found: dict[str, list[Any]] = {}
    for path in files(ALGORITHMS[algo]):
        for name, value in {**read(root() / "basic.yaml"), **read(path)}.items():
            values = found.setdefault(name, [])
            if name not in OWN and value not in values:
                values.append(value)
    return {name: values for name, values in sorted(found.items()) if values}


def checked(algo: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given hyperparameters. ConfigError for an unknown name and for a value of another type than the file's."""
    known = hyperparameters(algo)
    for name in given:
        if name not in known:
            hint = nearest(name, known)
            raise ConfigError(f"extras.algo_params.{name}: {algo} has no such hyperparameter. {hint}")
    return {name: _typed(name, value, known[name]) for name, value in given.items()}


def kinds(defaults: list[Any]) -> list[str]:
    """The JSON types of a hyperparameter's defaults; a number may be written with or without a fraction."""
    return sorted({_KINDS.get(type(value), "string") for value in defaults})


_KINDS: dict[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


def _typed(name: str, value: Any, defaults: list[Any]) -> Any:
    wanted, given = kinds(defaults), _KINDS.get(type(value), "string")
    if given not in wanted and wanted != ["null"]:
        raise ConfigError(f"extras.algo_params.{name}: must be of type {' or '.join(wanted)}, not {value!r}.")
    is_whole = isinstance(value, float) and value.is_integer()
    # 1e5 for a buffer's size: XuanCe would pass the fraction on to numpy, which refuses it.
    return int(value) if is_whole and not any(isinstance(default, float) for default in defaults) else value


@cache
def read(path: Path) -> dict[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with open(path, encoding="utf-8") as file:
        return dict(yaml.load(file, Loader=loader))


def is_installed() -> bool:
    return importlib.util.find_spec("xuance") is not None


@cache
def root() -> Path:
    """XuanCe's folder of settings."""
    spec = importlib.util.find_spec("xuance")  # finds the package without importing it
    if spec is None or spec.origin is None:
        raise ConfigError("XuanCe is not installed here. Install the worker with: mosaic worker install xuance")
    return Path(spec.origin).parent / "configs"
