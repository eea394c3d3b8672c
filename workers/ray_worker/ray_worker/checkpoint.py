"""Checkpoints: a folder with RLlib's own files, which contain pickles. The replay buffer is not part of it.

checkpoint-000000050000/
├── learner_group/learner/rl_module/POLICY/      the networks; all that an evaluation loads
├── learner_group/learner/state.pkl              optimizers
├── env_runner/  algorithm_state.pkl             connectors, counters
└── commit.json                                  written last, with the settings in force
"""

from pathlib import Path

from mosaic_sdk.checkpoints import Checkpoint
from mosaic_sdk.library import saving

from ray_worker import WORKER
from ray_worker.config import RayWorkerConfig

MODULES = Path("learner_group", "learner", "rl_module")


def find(config: RayWorkerConfig) -> Checkpoint:
    """The checkpoint of `policy_path`. CheckpointError if it is missing, damaged, unsuitable or not trusted."""
    return saving.find(config, worker=WORKER, has_pickles=True)


def modules_in(found: Checkpoint) -> dict[str, Path]:
    """The folder of each policy's network."""
    home = Path(found.path) / MODULES
    return {path.name: path for path in sorted(home.iterdir()) if path.is_dir()} if home.is_dir() else {}
