"""Checkpoints: the state of a training in one file, with the settings in force beside it.

checkpoints/checkpoint-000000051200.pt                  tensors and plain data: torch.load(…, weights_only=True)
checkpoints/checkpoint-000000051200.pt.commit.json      settings, step, algorithm, environment
"""

import pickle
from typing import Any

from mosaic_sdk import files
from mosaic_sdk.checkpoints import Checkpoint, CheckpointError
from mosaic_sdk.library import saving

from xuance_worker import WORKER
from xuance_worker.config import XuanceConfig

FORMAT = 1


def write(agent: Any, path: str) -> None:
    import torch

    from xuance_worker.state import capture

    with files.atomic_file(path) as file:
        torch.save({"format": FORMAT, **capture(agent)}, file)


def find(config: XuanceConfig) -> Checkpoint:
    """The checkpoint of `policy_path`. CheckpointError if it is missing, damaged or unsuitable."""
    return saving.find(config, worker=WORKER, format=FORMAT)


def load(found: Checkpoint) -> dict[str, Any]:
    """The state in a checkpoint."""
    import torch

    try:
        return dict(torch.load(found.path, map_location="cpu", weights_only=True))
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{found.path} cannot be read: {error}") from None
