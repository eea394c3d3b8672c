"""The worker's JSON Schema: its settings from config.py, the hyperparameters from each algorithm's constructor."""

from typing import Any

from mosaic_sdk import keywords
from mosaic_sdk.schema import schema_of

from stable_baselines3_worker.algorithms import ALGORITHMS, SBX, hyperparameters
from stable_baselines3_worker.config import INTERACTIVE, POLICY_EVAL, RESUME, StableBaselines3Config

LAB: dict[str, dict[str, Any]] = {
    "short": {"algo": "a2c", "env_id": "CartPole-v1", "total_timesteps": 600, "seed": 1},
    "long": {"algo": "a2c", "env_id": "CartPole-v1", "total_timesteps": 100_000_000, "seed": 1},
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
    "extras.eval_capture_video": "{video}",
    "extras.device": "{parent}",
}
AS_OPERATOR = {
    "settings": {
        "extras.mode": INTERACTIVE,
        "extras.policy_path": "{checkpoint}",
        "algo": "{algo}",
        "env_id": "{env_id}",
        "extras.env_kwargs": "{env_kwargs}",
        "extras.device": "{parent}",
    },
    "arguments": ["--interactive"],
}
EXAMPLES = [
    "algo=ppo env_id=CartPole-v1 total_timesteps=100000 n_envs=4",
    "algo=sac env_id=Pendulum-v1 total_timesteps=20000 learning_rate=1e-3",
    "algo=dqn env_id=PongNoFrameskip-v4 frame_stack=4 buffer_size=100000 --gpus 1",
    "mode=policy_eval policy_path=last eval_episodes=20",
]


def make_schema() -> dict[str, Any]:
    schema = schema_of(
        StableBaselines3Config,
        title="Stable-Baselines3",
        lab=LAB,
        examples=EXAMPLES,
        resume={"extras.mode": RESUME, "extras.policy_path": "{checkpoint}"},
        evaluate=EVALUATE,
        interactive=AS_OPERATOR,
        export="stable_baselines3_worker.export",
        inherits_with=["extras.policy_path"],
        variants={"algo": {name: SBX for name, found in ALGORITHMS.items() if found.is_jax}},
    )
    schema["properties"]["algo"]["enum"] = list(ALGORITHMS)
    by_algorithm = {name: hyperparameters(name) for name in ALGORITHMS}
    schema["properties"]["extras"]["properties"]["algo_params"] = {
        "type": "object",
        "properties": _merged(by_algorithm),
        "additionalProperties": False,
        keywords.ALGORITHMS: by_algorithm,
    }
    return schema


def _merged(by_algorithm: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Each hyperparameter once, with the types of all algorithms. A default that differs is stated per algorithm."""
    merged: dict[str, Any] = {}
    for parts in by_algorithm.values():
        for name, part in parts.items():
            merged[name] = _joined(merged[name], part) if name in merged else dict(part)
    return merged


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    kinds = list(dict.fromkeys([*_kinds(one), *_kinds(other)]))
    joined = {**one, "type": kinds[0] if len(kinds) == 1 else kinds}
    if one.get("default") != other.get("default"):
        joined.pop("default", None)
    return joined


def _kinds(part: dict[str, Any]) -> list[str]:
    return [part["type"]] if isinstance(part["type"], str) else list(part["type"])
