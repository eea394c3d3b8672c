"""The worker's JSON Schema: its settings from config.py, the hyperparameters from XuanCe's own files.

`extras.algo_params` lists every hyperparameter of any algorithm; under `x-mosaic-algorithms` it has those of each.
"""

from typing import Any

from mosaic_sdk.library.schema import library_schema

from xuance_worker import presets
from xuance_worker.algorithms import ALGORITHMS, UNAVAILABLE
from xuance_worker.config import XuanceConfig

_SMALL = {"algo": "ppo", "env_id": "CartPole-v1", "parallels": 2, "seed": 1}
LAB: dict[str, dict[str, Any]] = {
    "short": {**_SMALL, "total_timesteps": 200, "extras": {"algo_params": {"horizon_size": 32}}},
    "long": {**_SMALL, "total_timesteps": 100_000_000},
    "fails": {"env_id": "NoSuch-v0", "total_timesteps": 10},
    "interactive": {"algo": "ppo", "env_id": "CartPole-v1"},
    "agent": {"algo": "ppo", "env_id": "CartPole-v1", "observation": [0, 0, 0, 0]},
}
EXAMPLES = [
    "algo=ppo env_id=CartPole-v1 total_timesteps=50000 seed=1",
    "algo=sac env_id=Pendulum-v1 total_timesteps=20000 parallels=4 learning_rate=1e-3",
    "algo=qmix env_id=simple_spread_v3 total_timesteps=100000",
    "mode=policy_eval policy_path=last eval_episodes=20 seed=1000000",
]


def make_schema() -> dict[str, Any]:
    # XuanCe's own files have them. The worker describes itself before it is installed too, without them.
    installed = ALGORITHMS if presets.is_installed() else ()
    return library_schema(
        XuanceConfig,
        title="XuanCe",
        lab=LAB,
        examples=EXAMPLES,
        by_algorithm={algo: _parts(presets.hyperparameters(algo)) for algo in installed},
        algorithms=list(ALGORITHMS),
        unavailable=UNAVAILABLE,
    )


def _parts(defaults: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: _part(values) for name, values in sorted(defaults.items())}


def _part(defaults: list[Any]) -> dict[str, Any]:
    """A default is stated only where all of XuanCe's files for the algorithm have the same."""
    kinds = presets.kinds(defaults)
    part: dict[str, Any] = {} if kinds == ["null"] else {"type": kinds[0] if len(kinds) == 1 else kinds}
    if len(defaults) == 1 and defaults[0] is not None:
        part["default"] = defaults[0]
    return part
