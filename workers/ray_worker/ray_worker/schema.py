"""The worker's JSON Schema: its settings from config.py, the training parameters from parameters.json."""

from typing import Any

from mosaic_sdk.library.schema import library_schema

from ray_worker.algorithms import ALGORITHMS, UNAVAILABLE, model_parameters, parameters
from ray_worker.config import RayWorkerConfig

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
EXAMPLES = [
    "algo=ppo env_id=CartPole-v1 total_timesteps=100000 lr=3e-4",
    "algo=sac env_id=Pendulum-v1 total_timesteps=20000 actor_lr=3e-4",
    "algo=appo env_id=CartPole-v1 num_env_runners=2 --cpus 3",
    "algo=ppo env_id=mpe2/simple_spread_v3 policies=shared",
    "mode=policy_eval policy_path=last eval_episodes=20",
]


def make_schema() -> dict[str, Any]:
    schema = library_schema(
        RayWorkerConfig,
        title="Ray RLlib",
        lab=LAB,
        examples=EXAMPLES,
        by_algorithm={name: parameters(name) for name in ALGORITHMS},
        unavailable=UNAVAILABLE,
    )
    extras = schema["properties"]["extras"]["properties"]
    extras["model_config"].update(properties=model_parameters(), additionalProperties=False)
    return schema
