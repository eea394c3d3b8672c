"""python -m ray_worker.parameters: writes parameters.json from the installed RLlib (see algorithms.py)."""

import dataclasses
import inspect
import json
from typing import Any

from ray_worker import UPSTREAM_VERSION
from ray_worker.algorithms import ALGORITHMS, FILE, config_class

# Classes, functions, and what only the old API stack reads.
_LEFT_OUT = {
    *("model", "optimizer", "learner_class", "learner_connector", "learner_config_dict", "before_learn_on_batch"),
    *("add_default_connectors_to_learner_pipeline", "train_batch_size", "lr_schedule", "entropy_coeff_schedule"),
    *("num_sgd_iter", "max_requests_in_flight_per_sampler_worker", "num_aggregation_workers", "optimization_config"),
    *("max_requests_in_flight_per_aggregator_worker", "num_gpu_loader_threads", "num_multi_gpu_tower_stacks"),
    *("minibatch_buffer_size", "replay_proportion", "replay_buffer_num_slots", "learner_queue_timeout"),
    *("q_model_config", "policy_model_config", "hiddens", "noisy", "sigma0", "training_intensity", "opt_type"),
    *("decay", "momentum", "adam_epsilon", "target_update_frequency", "store_buffer_in_checkpoints"),
    *("max_requests_in_flight_per_aggregator_actor", "num_aggregator_actors_per_learner", "use_circular_buffer"),
    *("twin_q", "clip_actions", "categorical_distribution_temperature", "target_worker_clipping"),
}
# Names that mean something else in another algorithm, or that it ignores.
_LEFT_OUT_OF = {"impala": {"epsilon"}, "appo": {"epsilon", "use_critic"}, "ppo": {"vf_share_layers"}}
_SCHEDULES = ("lr", "actor_lr", "critic_lr", "alpha_lr", "entropy_coeff", "epsilon")
_KINDS = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
}
# The kinds of parameters whose default is None or does not show all of them.
_KNOWN = {
    "grad_clip": ["number", "null"],
    "minibatch_size": ["integer", "null"],
    "target_entropy": ["string", "number"],
    "n_step": ["integer", "array"],
    "lr": ["number", "array", "null"],
}


def collect() -> dict[str, Any]:
    """The content of parameters.json. Imports RLlib."""
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    model = {field.name: _part(field.name, _default(field)) for field in dataclasses.fields(DefaultModelConfig)}
    return {
        "rllib": UPSTREAM_VERSION,
        "algorithms": {algo: _parameters(algo) for algo in ALGORITHMS},
        "model": dict(sorted(model.items())),
    }


def _parameters(algo: str) -> dict[str, Any]:
    kind = config_class(algo)
    made = kind()
    functions = [vars(one)["training"] for one in kind.__mro__ if "training" in vars(one)]
    names = {name for function in functions for name in inspect.signature(function).parameters}
    names -= {"self", "kwargs", *_LEFT_OUT, *_LEFT_OUT_OF.get(algo, ())}
    found = {name: _part(name, getattr(made, name)) for name in names if name[0] != "_" and hasattr(made, name)}
    # Not in training(), but it decides as much about a training as the batch size.
    found["rollout_fragment_length"] = {"type": ["integer", "string"], "default": made.rollout_fragment_length}
    return dict(sorted(found.items()))


def _part(name: str, value: Any) -> dict[str, Any]:
    kinds: Any = _KNOWN.get(name) or _KINDS.get(type(value), [])
    if name in _SCHEDULES and name not in _KNOWN:
        kinds = list(dict.fromkeys(["number", "array", *([kinds] if isinstance(kinds, str) else kinds)]))
    return {**({"type": kinds} if kinds else {}), "default": json.loads(json.dumps(value))}


def _default(field: Any) -> Any:
    return field.default if field.default is not dataclasses.MISSING else field.default_factory()


if __name__ == "__main__":
    FILE.write_text(json.dumps(collect(), indent=1) + "\n")
