"""The policy of a checkpoint as safetensors, beside SB3's own file."""

import io
import json
import zipfile

import pytest
import torch
from mosaic_sdk import checkpoints
from mosaic_sdk.checkpoints import CheckpointError
from stable_baselines3_worker.export import export, policy_weights


def write_model(folder, policy):
    folder.mkdir()
    weights = io.BytesIO()
    torch.save(policy, weights)
    with zipfile.ZipFile(folder / "model.zip", "w") as archive:
        archive.writestr("data", "{}")
        archive.writestr("policy.pth", weights.getvalue())
    return checkpoints.commit(folder, worker="stable_baselines3", step=1, algo="ppo", settings={})


def test_the_weights_are_the_policys(tmp_path):
    network = torch.nn.Linear(4, 2)
    checkpoint = write_model(tmp_path / "checkpoint-1", network.state_dict())
    (tmp_path / "out").mkdir()

    found = export(checkpoint, str(tmp_path / "out"))

    data = (tmp_path / "out/model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    begin, end = header["weight"]["data_offsets"]
    assert data[8 + length :][begin:end] == network.weight.detach().numpy().tobytes()
    assert (tmp_path / "out/model.zip").read_bytes() == (tmp_path / "checkpoint-1/model.zip").read_bytes()
    assert sorted(found.files) == ["model.safetensors", "model.zip"]
    assert 'PPO.load("model.zip")' in found.usage


def test_a_policy_with_code_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return (print, ("executed",))

    write_model(tmp_path / "checkpoint-1", {"weight": Evil()})

    with pytest.raises(CheckpointError, match="does not contain only weights"):
        policy_weights(str(tmp_path / "checkpoint-1/model.zip"))
