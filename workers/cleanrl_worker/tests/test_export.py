"""The weights of a checkpoint as safetensors."""

import json

import torch
from cleanrl_worker.checkpoints import save_checkpoint
from cleanrl_worker.export import export
from mosaic_sdk.checkpoints import read
from mosaic_sdk.export import run_export


def save(folder, **more):
    network = torch.nn.Linear(4, 2)
    rms = {"obs_rms": [{"mean": torch.ones(4).numpy(), "var": torch.ones(4).numpy(), "count": 3.0}]}
    state = {"algo": "ppo", "env_id": "CartPole-v1", "global_step": 7, "modules": {"agent": network.state_dict()}}
    return network, save_checkpoint(folder, {**state, "normalisation": rms, **more})


def read_safetensors(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def test_the_weights_are_the_modules_by_name(tmp_path):
    network, path = save(tmp_path)

    found = export(read(path), str(tmp_path))

    header, body = read_safetensors(tmp_path / "model.safetensors")
    begin, end = header["agent.weight"]["data_offsets"]
    assert body[begin:end] == network.weight.detach().numpy().tobytes()
    assert header["agent.weight"] | {"data_offsets": 0} == {"dtype": "F32", "shape": [2, 4], "data_offsets": 0}
    assert "normalisation.obs_rms.0.mean" in header
    assert (found.library, found.algo, list(found.files)) == ("cleanrl", "ppo", ["model.safetensors"])


def test_bfloat16_keeps_its_bits(tmp_path):
    weights = torch.tensor([1.0, -2.5], dtype=torch.bfloat16)
    _, path = save(tmp_path, modules={"agent": {"w": weights}})

    export(read(path), str(tmp_path))

    header, body = read_safetensors(tmp_path / "model.safetensors")
    begin, end = header["agent.w"]["data_offsets"]
    assert header["agent.w"]["dtype"] == "BF16"
    assert body[begin:end] == weights.view(torch.int16).numpy().tobytes()


def test_a_pickle_with_code_is_refused(tmp_path, capsys):
    class Evil:
        def __reduce__(self):
            return (print, ("executed",))

    path = tmp_path / "checkpoint-000000000001.pt"
    torch.save({"format": 1, "modules": Evil()}, path)

    code = run_export(export, [str(path), str(tmp_path)])

    printed = capsys.readouterr()
    assert code == 1
    assert "does not contain only weights" in printed.err
    assert "executed" not in printed.out
    assert not (tmp_path / "export.json").exists()
