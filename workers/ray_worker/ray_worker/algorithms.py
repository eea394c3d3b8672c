"""The algorithms of RLlib that this worker trains, and what their training parameters are.

The parameters are those of `AlgorithmConfig.training()`. They are in parameters.json, because importing RLlib takes
longer than a worker may take to state its schema; a test compares the file with the installed RLlib. After an upgrade,
write it again with: python -m ray_worker.parameters
"""

import importlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.library.settings import nearest
from mosaic_sdk.values import checked

# The class of each algorithm's config, in ray.rllib.algorithms.NAME.
ALGORITHMS = {
    "ppo": "PPOConfig",
    "appo": "APPOConfig",
    "impala": "IMPALAConfig",
    "dqn": "DQNConfig",
    "sac": "SACConfig",
    "tqc": "TQCConfig",
}
_OFFLINE = "it learns from recorded episodes, and this worker trains in environments"
UNAVAILABLE = {
    "bc": _OFFLINE,
    "cql": _OFFLINE,
    "iql": _OFFLINE,
    "marwil": _OFFLINE,
    "dreamerv3": "this worker does not run it; MOSAIC's own DreamerV3 is the worker dreamer",
}
OFF_POLICY = ("dqn", "sac", "tqc")
CONTINUOUS_ONLY = ("tqc",)
FILE = Path(__file__).with_name("parameters.json")


@cache
def _file() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def parameters(algo: str) -> dict[str, dict[str, Any]]:
    """JSON Schema of each training parameter of an algorithm."""
    return dict(_file()["algorithms"][algo])


def model_parameters() -> dict[str, dict[str, Any]]:
    """The same for the settings of the network (RLlib's DefaultModelConfig)."""
    return dict(_file()["model"])


def config_class(algo: str) -> Any:
    """The class of its AlgorithmConfig. Imports RLlib."""
    return getattr(importlib.import_module(f"ray.rllib.algorithms.{algo}"), ALGORITHMS[algo])


def check(algo: str, params: Mapping[str, Any], model: Mapping[str, Any]) -> None:
    """ConfigError for an algorithm, a training parameter or a model setting that does not exist or fit."""
    if algo in UNAVAILABLE:
        raise ConfigError(f"algo: {algo} cannot be used: {UNAVAILABLE[algo]}.")
    if algo not in ALGORITHMS:
        raise ConfigError(f"algo: there is no algorithm {algo!r}. {nearest(algo, ALGORITHMS)}")
    _check_each("extras.algo_params", f"{algo} has no training parameter", params, parameters(algo))
    _check_each("extras.model_config", "the model has no setting", model, model_parameters())


def _check_each(place: str, lacks: str, given: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> None:
    for name, value in given.items():
        if name not in known:
            raise ConfigError(f"{place}.{name}: {lacks} {name}. {nearest(name, known)}")
        kinds = known[name].get("type", [])
        checked(value, [kinds] if isinstance(kinds, str) else kinds, {}, f"{place}.{name}")
