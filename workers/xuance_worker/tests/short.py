"""A training of a second or two for each algorithm, with updates of its networks."""

from typing import Any

from xuance_worker import presets
from xuance_worker.algorithms import ALGORITHMS

# Small enough to be filled, and learned from, within STEPS.
SMALL: dict[str, Any] = {
    "horizon_size": 32,
    "buffer_size": 64,
    "n_minibatch": 2,
    "n_epochs": 1,
    "batch_size": 16,
    "start_training": 20,
    "training_frequency": 10,
}
STEPS = 200
CONTINUOUS = ("ddpg", "td3")
LONG_STEPS = 440  # two episodes of Pendulum at once


def short_config(algo: str, **more: Any) -> dict[str, Any]:
    is_many = ALGORITHMS[algo].is_multi_agent
    env_id = "simple_spread_v3" if is_many else "Pendulum-v1" if algo in CONTINUOUS else "CartPole-v1"
    known = presets.hyperparameters(algo)
    params = {name: value for name, value in SMALL.items() if name in known}
    if "buffer_size" in params and "start_training" in params:
        params["buffer_size"] = 500
    return {
        "algo": algo,
        "env_id": env_id,
        "total_timesteps": LONG_STEPS if algo in CONTINUOUS else STEPS,
        "parallels": 2,
        "extras": {"algo_params": params, **more},
    }
