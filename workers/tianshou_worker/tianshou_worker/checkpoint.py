"""Checkpoints: checkpoint-000000050000.pt, networks and optimizers; read with torch.load(…, weights_only=True).

The replay buffer is not part of it: a resumed training fills it again.
"""

import pickle
from typing import Any

from mosaic_sdk import files
from mosaic_sdk.checkpoints import Checkpoint, CheckpointError


def write(algorithm: Any, path: str) -> None:
    import torch

    with files.atomic_file(path) as file:
        torch.save(algorithm.state_dict(), file)


def restore(algorithm: Any, found: Checkpoint) -> None:
    import torch

    try:
        algorithm.load_state_dict(torch.load(found.path, map_location="cpu", weights_only=True))
    except (OSError, RuntimeError, EOFError, KeyError, ValueError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{found.path} cannot be loaded: {error}. Use another checkpoint.") from None
