"""Checkpoints: the state of a training in one file, with the settings in force beside it.

checkpoints/checkpoint-000000051200.pt                  tensors and plain data: torch.load(…, weights_only=True)
checkpoints/checkpoint-000000051200.pt.commit.json      settings, step, algorithm, environment
"""

import os
import pickle
from typing import Any, NamedTuple

from mosaic_sdk import checkpoints, emit, files
from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.names import CHECKPOINTS, COMMIT_FILE, WorkerEnv

from xuance_worker import UPSTREAM_VERSION, WORKER
from xuance_worker.config import XuanceConfig

FORMAT = 1


class Saved(NamedTuple):
    """A checkpoint and the config of its training."""

    path: str
    step: int
    config: XuanceConfig
    state: dict[str, Any]


def save(agent: Any, config: XuanceConfig, preset: str) -> str:
    """Write a checkpoint, report it, and remove old ones; returns its path."""
    import torch

    from xuance_worker.state import NOT_SAVED, capture

    folder = os.environ.get(WorkerEnv.CHECKPOINT_DIR) or os.path.join(config.run_dir, CHECKPOINTS)
    step = int(agent.current_step)
    path = os.path.join(folder, f"checkpoint-{step:012d}.pt")
    with files.atomic_file(path) as file:
        torch.save({"format": FORMAT, **capture(agent)}, file)
    about: dict[str, Any] = {"env_id": config.env_id, "algo": config.algo, "settings": config.to_dict()}
    checkpoints.commit(path, worker=WORKER, format=FORMAT, step=step, preset=preset, upstream=UPSTREAM_VERSION, **about)
    emit.checkpoint_saved(path, step=step, left_out=NOT_SAVED)
    checkpoints.Checkpoints(folder).prune(config.keep_checkpoints)
    return path


def about(path: str) -> checkpoints.Checkpoint:
    """What is known of a checkpoint, without loading it. CheckpointError if it is not one of this worker's."""
    found = checkpoints.find(path)
    found.require(worker=WORKER, format=FORMAT)
    if not found.settings:
        raise CheckpointError(f"{found.path} has no {COMMIT_FILE} with its settings beside it.")
    damage = found.damage()
    if damage:
        raise CheckpointError(f"{found.path} is damaged: {damage}. Use an older one.")
    return found


def load(path: str, config: XuanceConfig) -> Saved:
    """A checkpoint with the config of its training, as this run continues, evaluates or plays it."""
    import torch

    found = about(path)
    try:
        state = torch.load(found.path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{found.path} cannot be read: {error}") from None
    trained = XuanceConfig.from_dict({**found.settings, "run_id": config.run_id})
    return Saved(found.path, found.step or 0, trained, state)
