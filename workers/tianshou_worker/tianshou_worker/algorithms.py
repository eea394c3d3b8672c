"""The algorithms, and their hyperparameters: Tianshou's names and, except for the networks, its defaults."""

from typing import Any

_NETWORK: dict[str, Any] = {"hidden_sizes": [64, 64], "lr": 1e-3, "gamma": 0.99}
_ON_POLICY: dict[str, Any] = {
    **_NETWORK,
    "vf_coef": 0.5,
    "ent_coef": 0.01,
    "max_grad_norm": 0.5,
    "gae_lambda": 0.95,
    "return_scaling": False,
    "collection_step_num_env_steps": 2048,
    "update_step_num_repetitions": 4,
    "batch_size": 64,
}
_OFF_POLICY: dict[str, Any] = {
    **_NETWORK,
    "n_step_return_horizon": 1,
    "buffer_size": 100_000,
    "start_steps": 1000,
    "collection_step_num_env_steps": 10,
    "update_step_num_gradient_steps_per_sample": 1.0,
    "batch_size": 64,
}
_ACTOR_CRITIC: dict[str, Any] = {**_OFF_POLICY, "tau": 0.005}

DEFAULTS: dict[str, dict[str, Any]] = {
    "a2c": _ON_POLICY,
    "ddpg": {**_ACTOR_CRITIC, "exploration_noise": 0.1},
    "dqn": {**_OFF_POLICY, "eps_training": 0.1, "target_update_freq": 320, "is_double": True},
    "ppo": {**_ON_POLICY, "eps_clip": 0.2, "advantage_normalization": True},
    "sac": {**_ACTOR_CRITIC, "alpha": 0.2},
    "td3": {**_ACTOR_CRITIC, "exploration_noise": 0.1, "policy_noise": 0.2, "update_actor_freq": 2, "noise_clip": 0.5},
}
ON_POLICY = ("a2c", "ppo")
CONTINUOUS = ("ddpg", "sac", "td3")
# What belongs to the trainer, the buffer, the policy or the networks; the rest are arguments of the algorithm's class.
ELSEWHERE = {
    *("hidden_sizes", "lr", "buffer_size", "start_steps", "eps_training", "exploration_noise", "batch_size"),
    *("collection_step_num_env_steps", "update_step_num_repetitions", "update_step_num_gradient_steps_per_sample"),
}
_HELP = {
    "hidden_sizes": "Units of the hidden layers of each network.",
    "start_steps": "Random steps before learning begins.",
    "exploration_noise": "Standard deviation of the noise on actions in the training, which are between -1 and 1.",
    "collection_step_num_env_steps": "Steps between two updates, summed over all environments.",
}
_KINDS = {bool: "boolean", int: "integer", float: "number", list: "array"}


def properties(algo: str) -> dict[str, dict[str, Any]]:
    """A JSON Schema property for each hyperparameter."""
    return {
        name: {"type": _KINDS[type(value)], "default": value, "description": _HELP.get(name, "")}
        for name, value in DEFAULTS[algo].items()
    }
