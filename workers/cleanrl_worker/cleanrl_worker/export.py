"""python -m cleanrl_worker.export CHECKPOINT FOLDER: the weights of a checkpoint as safetensors.

Tensors are called MODULE.NAME, as in the script: `agent.actor.0.weight`, `q_network.network.0.bias`. Running means of
observations and returns, if the script has them, are `normalisation.obs_rms.0.mean` …
"""

import os
import sys
from typing import Any

import numpy as np
import torch
from mosaic_sdk.checkpoints import Checkpoint as Saved
from mosaic_sdk.export import WEIGHTS, Exported, Raw, flat, run_export, write_safetensors

from cleanrl_worker.checkpoints import Checkpoint, load_checkpoint

_OPTIMIZER = "opt_state"  # in the states of JAX scripts, beside their params
_TORCH_USAGE = """\
from safetensors.torch import load_file

weights = load_file("{file}")
{name} = {{key.removeprefix("{name}."): value for key, value in weights.items() if key.startswith("{name}.")}}
# The network is a class of CleanRL's script for {algo}: network.load_state_dict({name})"""
_JAX_USAGE = """\
from safetensors.flax import load_file

weights = load_file("{file}")  # the names of flax's parameters, joined by dots"""


def export(saved: Saved, folder: str) -> Exported:
    found = load_checkpoint(saved.path)
    trees = {**found.modules, "normalisation": found.normalisation}
    arrays = {name: as_array(part) for name, part in flat(trees).items() if _OPTIMIZER not in name.split(".")}
    about = {"format": "pt" if is_torch(found) else "flax", "algo": found.algo, "env_id": found.env_id}
    write_safetensors(os.path.join(folder, WEIGHTS), arrays, about)
    what = f"the weights of {', '.join(found.modules)}" + (" and the running means" if found.normalisation else "")
    left_out = ("optimizers, replay buffers, environments and random number generators: what only a resume needs",)
    return Exported("cleanrl", {WEIGHTS: what}, _usage(found), left_out, found.algo)


def as_array(part: Any) -> Any:
    """An array that can be written; torch's bfloat16 has no counterpart in numpy."""
    if isinstance(part, torch.Tensor):
        tensor = part.detach().cpu().contiguous()
        if tensor.dtype is torch.bfloat16:
            return Raw("bfloat16", tuple(tensor.shape), tensor.view(torch.int16).numpy().tobytes())
        return tensor.numpy()
    return np.asarray(part)


def is_torch(found: Checkpoint) -> bool:
    parts = flat(found.modules).values()
    return all(isinstance(part, torch.Tensor) for part in parts)


def _usage(found: Checkpoint) -> str:
    if not is_torch(found):
        return _JAX_USAGE.format(file=WEIGHTS)
    return _TORCH_USAGE.format(file=WEIGHTS, name=next(iter(found.modules), "agent"), algo=found.algo or "it")


if __name__ == "__main__":
    sys.exit(run_export(export))
