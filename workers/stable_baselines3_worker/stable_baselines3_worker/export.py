"""python -m stable_baselines3_worker.export CHECKPOINT FOLDER: the policy's weights as safetensors, and SB3's own file.

Only the weights are read, with `weights_only`. `model.zip`, which SB3 and `huggingface_sb3` load, is copied unread: it
contains pickles.
"""

import io
import os
import shutil
import sys
import zipfile
from typing import Any

import torch
from mosaic_sdk.checkpoints import Checkpoint, CheckpointError
from mosaic_sdk.export import WEIGHTS, Exported, Raw, flat, run_export, write_safetensors
from mosaic_sdk.library.saving import FORMAT

from stable_baselines3_worker import WORKER, algorithms
from stable_baselines3_worker.checkpoint import MODEL, NORMALIZER

POLICY = "policy.pth"  # in model.zip
_USAGE = """\
from {package} import {algorithm}

model = {algorithm}.load("{file}")  # contains pickles: load it only if you trust its source
action, _ = model.predict(observation, deterministic=True)"""


def export(checkpoint: Checkpoint, folder: str) -> Exported:
    checkpoint.require(worker=WORKER, format=FORMAT)
    model = os.path.join(checkpoint.path, MODEL)
    weights = policy_weights(model)
    files = {MODEL: "SB3's own file, with pickles: load it only if you trust its source"}
    shutil.copyfile(model, os.path.join(folder, MODEL))
    if weights:
        write_safetensors(os.path.join(folder, WEIGHTS), weights, {"format": "pt"})
        files = {WEIGHTS: "the weights of the policy", **files}
    if os.path.exists(os.path.join(checkpoint.path, NORMALIZER)):
        shutil.copyfile(os.path.join(checkpoint.path, NORMALIZER), os.path.join(folder, NORMALIZER))
        files[NORMALIZER] = "VecNormalize's running means, a pickle"
    algo = str(checkpoint.about.get("algo") or "")
    left_out = () if weights else ("safetensors: this policy is not a torch module",)
    return Exported("stable-baselines3", files, usage(algo), (*left_out, "the replay buffer, if there is one"), algo)


def policy_weights(path: str) -> dict[str, Any]:
    """The state dict of the policy; empty for SBX, whose policies are not torch's."""
    try:
        with zipfile.ZipFile(path) as archive:
            if POLICY not in archive.namelist():
                return {}
            data = io.BytesIO(archive.read(POLICY))
        # Only weights: a pickle can run any code.
        return {name: _array(part) for name, part in flat(torch.load(data, "cpu", weights_only=True)).items()}
    except Exception as error:  # noqa: BLE001  # on a damaged file torch's unpickler and zip reader raise almost anything
        raise CheckpointError(f"{path} is damaged or does not contain only weights: {error}") from None


def usage(algo: str) -> str:
    found = algorithms.find(algo)
    return _USAGE.format(package=found.package, algorithm=found.class_name, file=MODEL)


def _array(tensor: torch.Tensor) -> Any:
    plain = tensor.detach().contiguous()
    if plain.dtype is torch.bfloat16:
        return Raw("bfloat16", tuple(plain.shape), plain.view(torch.int16).numpy().tobytes())
    return plain.numpy()


if __name__ == "__main__":
    sys.exit(run_export(export))
