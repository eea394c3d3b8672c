"""The parameters of an agent as safetensors."""

import json

import numpy as np
from dreamer_worker.checkpoint import Epochs, write_arrays
from dreamer_worker.export import export
from mosaic_sdk.checkpoints import read


def test_only_the_parameters_are_exported(tmp_path):
    epochs = Epochs(tmp_path)
    folder = epochs.begin(1)
    kernel = np.arange(6, dtype=np.float32).reshape(2, 3)
    write_arrays(folder / "agent.npz", {"params/dyn/kernel": kernel, "moments/mean": kernel, "acted": np.array(3)})
    epochs.commit(1, {"env_steps": 10}, {"env": "gym_CartPole-v1"})

    found = export(read(folder), str(tmp_path))

    data = (tmp_path / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert [name for name in header if name != "__metadata__"] == ["params/dyn/kernel"]
    assert data[8 + length :] == kernel.tobytes()
    assert found.library == "dreamer"
