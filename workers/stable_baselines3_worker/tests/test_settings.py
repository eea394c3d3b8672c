"""Algorithms and hyperparameters, as the installed library defines them."""

import subprocess
import sys

import pytest
from mosaic_sdk import keywords
from mosaic_sdk.config import ConfigError
from stable_baselines3_worker.algorithms import ALGORITHMS, hyperparameters
from stable_baselines3_worker.config import StableBaselines3Config
from stable_baselines3_worker.schema import make_schema


def config(**keys):
    return StableBaselines3Config.from_dict({"run_id": "test", **keys})


@pytest.mark.parametrize("algo", [name for name, found in ALGORITHMS.items() if not found.is_jax])
def test_every_hyperparameter_is_an_argument_of_the_constructor_with_its_default(algo):
    import inspect

    arguments = inspect.signature(ALGORITHMS[algo].load()).parameters

    for name, part in hyperparameters(algo).items():
        assert arguments[name].default == part["default"], name
    assert {"learning_rate", "gamma", "policy_kwargs"} <= set(hyperparameters(algo))


def test_a_hyperparameter_that_the_algorithm_does_not_have_is_refused_with_the_nearest_name():
    with pytest.raises(
        ConfigError, match=r"extras.algo_params.n_step: ppo has no such setting. Did you mean n_steps\?"
    ):
        config(extras={"algo_params": {"n_step": 128}})
    with pytest.raises(ConfigError, match="clip_range: dqn has no such setting"):
        config(algo="dqn", extras={"algo_params": {"clip_range": 0.2}})
    for own in ("env", "tensorboard_log", "replay_buffer_class"):
        with pytest.raises(ConfigError, match="no such setting"):
            config(algo="dqn", extras={"algo_params": {own: None}})


def test_an_unknown_algorithm_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"there is no algorithm 'pppo'\. Did you mean ppo"):
        config(algo="pppo")


def test_modes_and_checkpoints_must_fit_together():
    with pytest.raises(ConfigError, match="mode policy_eval needs the checkpoint"):
        config(extras={"mode": "policy_eval"})
    with pytest.raises(ConfigError, match="starts from scratch"):
        config(extras={"policy_path": "/somewhere"})


def test_the_schema_has_the_hyperparameters_of_each_algorithm():
    schema = make_schema()

    params = schema["properties"]["extras"]["properties"]["algo_params"]
    assert params["additionalProperties"] is False
    assert params[keywords.ALGORITHMS]["ppo"]["n_steps"]["default"] == 2048
    assert params["properties"]["ent_coef"]["type"] == ["number", "string"]
    assert "default" not in params["properties"]["learning_rate"]
    assert schema[keywords.VARIANTS]["algo"]["sbx_ppo"] == "sbx"


def test_neither_the_schema_nor_a_config_imports_torch():
    program = (
        "import sys; from stable_baselines3_worker import get_worker_schema; get_worker_schema();"
        "from stable_baselines3_worker.config import StableBaselines3Config as C; C.from_dict({'run_id': 'x'});"
        "sys.exit('torch' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0
