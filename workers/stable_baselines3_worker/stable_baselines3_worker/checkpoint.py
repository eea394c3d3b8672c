"""Checkpoints: a folder with the library's own files.

checkpoint-000000050000/
├── model.zip             model.save(); it contains pickles, like the two others
├── replay_buffer.pkl     of off-policy algorithms, if `save_replay_buffer` is set
├── normalizer.pkl        the statistics of VecNormalize, if `normalize` is set
└── commit.json           written last, with the settings in force
"""

import os
from typing import Any

from mosaic_sdk.checkpoints import Checkpoint
from mosaic_sdk.files import atomic_file
from mosaic_sdk.library import saving

from stable_baselines3_worker import WORKER
from stable_baselines3_worker.config import StableBaselines3Config

MODEL, BUFFER, NORMALIZER = "model.zip", "replay_buffer.pkl", "normalizer.pkl"


def write(model: Any, path: str, with_buffer: bool) -> None:
    with atomic_file(os.path.join(path, MODEL)) as file:
        model.save(file)
    if with_buffer and getattr(model, "replay_buffer", None) is not None:
        with atomic_file(os.path.join(path, BUFFER)) as file:
            model.save_replay_buffer(file)
    normalize = model.get_vec_normalize_env()
    if normalize is not None:
        normalize.save(os.path.join(path, NORMALIZER))


def find(config: StableBaselines3Config) -> Checkpoint:
    """The checkpoint of `policy_path`. CheckpointError if it is missing, unsuitable or not trusted."""
    return saving.find(config, worker=WORKER, has_pickles=True)


def part(found: Checkpoint, name: str) -> str:
    """The path of one of its files; empty if it has none."""
    path = os.path.join(found.path, name)
    return path if os.path.exists(path) else ""
