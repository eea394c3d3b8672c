"""The worker's JSON Schema."""

from typing import Any

from mosaic_sdk.library.schema import library_schema

from tianshou_worker.algorithms import DEFAULTS, properties
from tianshou_worker.config import TianshouConfig

_SMALL = {"collection_step_num_env_steps": 128, "update_step_num_repetitions": 1}
_RUN = {"algo": "ppo", "env_id": "CartPole-v1", "seed": 1, "extras": {"algo_params": _SMALL}}
LAB: dict[str, dict[str, Any]] = {
    "short": {**_RUN, "total_timesteps": 500},
    "long": {**_RUN, "total_timesteps": 100_000_000},
    "fails": {"env_id": "NoSuch-v0"},
    "interactive": {"env_id": "CartPole-v1"},
    "agent": {"env_id": "CartPole-v1", "observation": [0, 0, 0, 0]},
}
EXAMPLES = [
    "algo=ppo env_id=CartPole-v1 total_timesteps=100000 n_envs=4",
    "algo=sac env_id=Pendulum-v1 total_timesteps=20000 lr=1e-3",
    "mode=policy_eval policy_path=last eval_episodes=20",
]


def make_schema() -> dict[str, Any]:
    by_algorithm = {name: properties(name) for name in DEFAULTS}
    return library_schema(TianshouConfig, title="Tianshou", lab=LAB, examples=EXAMPLES, by_algorithm=by_algorithm)
