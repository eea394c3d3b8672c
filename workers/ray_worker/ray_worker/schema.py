"""The worker's JSON Schema: its settings from config.py, the training parameters from parameters.json."""

from typing import Any

from mosaic_sdk import keywords
from mosaic_sdk.schema import schema_of

from ray_worker.algorithms import ALGORITHMS, UNAVAILABLE, model_parameters, parameters
from ray_worker.config import INTERACTIVE, POLICY_EVAL, RESUME, RayWorkerConfig

_SMALL = {"train_batch_size_per_learner": 256, "minibatch_size": 64, "num_epochs": 1}
LAB: dict[str, dict[str, Any]] = {
    "short": {
        "algo": "ppo",
        "env_id": "CartPole-v1",
        "total_timesteps": 500,
        "seed": 1,
        "extras": {"report_every": 256, "algo_params": _SMALL},
    },
    "long": {
        "algo": "ppo",
        "env_id": "CartPole-v1",
        "total_timesteps": 100_000_000,
        "seed": 1,
        "extras": {"algo_params": _SMALL},
    },
    "fails": {"env_id": "NoSuch-v0"},
    "interactive": {"env_id": "CartPole-v1"},
    "agent": {"env_id": "CartPole-v1", "observation": [0, 0, 0, 0]},
}
# The settings of `mosaic eval RUN`; the checkpoint determines the algorithm and the environment.
EVALUATE = {
    "extras.mode": POLICY_EVAL,
    "extras.policy_path": "{checkpoint}",
    "seed": "{seed}",
    "extras.eval_episodes": "{episodes}",
}
AS_OPERATOR = {
    "settings": {
        "extras.mode": INTERACTIVE,
        "extras.policy_path": "{checkpoint}",
        "algo": "{algo}",
        "env_id": "{env_id}",
        "extras.env_kwargs": "{env_kwargs}",
    },
    "arguments": ["--interactive"],
}
EXAMPLES = [
    "algo=ppo env_id=CartPole-v1 total_timesteps=100000 lr=3e-4",
    "algo=sac env_id=Pendulum-v1 total_timesteps=20000 actor_lr=3e-4",
    "algo=appo env_id=CartPole-v1 num_env_runners=2 --cpus 3",
    "algo=ppo env_id=mpe2/simple_spread_v3 policies=shared",
    "mode=policy_eval policy_path=last eval_episodes=20",
]


def make_schema() -> dict[str, Any]:
    schema = schema_of(
        RayWorkerConfig,
        title="Ray RLlib",
        lab=LAB,
        examples=EXAMPLES,
        resume={"extras.mode": RESUME, "extras.policy_path": "{checkpoint}"},
        evaluate=EVALUATE,
        interactive=AS_OPERATOR,
        inherits_with=["extras.policy_path", "extras.checkpoint_path"],
    )
    schema["properties"]["algo"].update({"enum": list(ALGORITHMS), keywords.UNAVAILABLE: UNAVAILABLE})
    extras = schema["properties"]["extras"]["properties"]
    extras["model_config"].update(properties=model_parameters(), additionalProperties=False)
    by_algorithm = {name: parameters(name) for name in ALGORITHMS}
    extras["algo_params"] = {
        "type": "object",
        "properties": _merged(by_algorithm),
        "additionalProperties": False,
        keywords.ALGORITHMS: by_algorithm,
    }
    return schema


def _merged(by_algorithm: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Each parameter once, with the types of all algorithms. A default that differs is stated per algorithm."""
    merged: dict[str, Any] = {}
    for parts in by_algorithm.values():
        for name, part in parts.items():
            merged[name] = _joined(merged[name], part) if name in merged else dict(part)
    return merged


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    kinds = list(dict.fromkeys([*_kinds(one), *_kinds(other)]))
    joined = {**one, **({"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {})}
    if one.get("default") != other.get("default"):
        joined.pop("default", None)
    return joined


def _kinds(part: dict[str, Any]) -> list[str]:
    kinds = part.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)
