"""The worker's JSON Schema: its settings from config.py, the hyperparameters from each algorithm's constructor."""

from typing import Any

from mosaic_sdk.library.schema import library_schema

from stable_baselines3_worker.algorithms import ALGORITHMS, SBX, hyperparameters
from stable_baselines3_worker.config import StableBaselines3Config

LAB: dict[str, dict[str, Any]] = {
    "short": {"algo": "a2c", "env_id": "CartPole-v1", "total_timesteps": 600, "seed": 1},
    "long": {"algo": "a2c", "env_id": "CartPole-v1", "total_timesteps": 100_000_000, "seed": 1},
    "fails": {"env_id": "NoSuch-v0"},
    "interactive": {"env_id": "CartPole-v1"},
    "agent": {"env_id": "CartPole-v1", "observation": [0, 0, 0, 0]},
}
EXAMPLES = [
    "algo=ppo env_id=CartPole-v1 total_timesteps=100000 n_envs=4",
    "algo=sac env_id=Pendulum-v1 total_timesteps=20000 learning_rate=1e-3",
    "algo=dqn env_id=PongNoFrameskip-v4 frame_stack=4 buffer_size=100000 --gpus 1",
    "mode=policy_eval policy_path=last eval_episodes=20",
]


def make_schema() -> dict[str, Any]:
    return library_schema(
        StableBaselines3Config,
        title="Stable-Baselines3",
        lab=LAB,
        examples=EXAMPLES,
        by_algorithm={name: hyperparameters(name) for name in ALGORITHMS},
        export="stable_baselines3_worker.export",
        variants={"algo": {name: SBX for name, found in ALGORITHMS.items() if found.is_jax}},
    )
