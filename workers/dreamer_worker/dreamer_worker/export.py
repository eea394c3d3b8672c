"""python -m dreamer_worker.export CHECKPOINT FOLDER: the agent's parameters as safetensors.

Their names are the paths of the agent's modules: `params/dyn/gates/kernel`. JAX is not needed to read them.
"""

import os
import sys
from pathlib import Path

from mosaic_sdk.checkpoints import Checkpoint
from mosaic_sdk.export import WEIGHTS, Exported, run_export, write_safetensors

from dreamer_worker.checkpoint import FORMAT, WORKER, read_arrays

PARAMS = "params/"
_USAGE = """\
from safetensors.numpy import load_file

params = load_file("{file}")  # world model, actor and critic, by the paths of the agent's modules"""


def export(checkpoint: Checkpoint, folder: str) -> Exported:
    checkpoint.require(worker=WORKER, format=FORMAT)
    saved = read_arrays(Path(checkpoint.path) / "agent.npz")
    params = {name: array for name, array in saved.items() if name.startswith(PARAMS)}
    write_safetensors(os.path.join(folder, WEIGHTS), params, {"format": "np"})
    left_out = ("the optimizer's moments, the slow critic, the return scale and the replay: what only a resume needs",)
    files = {WEIGHTS: "the parameters of world model, actor and critic"}
    return Exported("dreamer", files, _USAGE.format(file=WEIGHTS), left_out, "dreamerv3")


if __name__ == "__main__":
    sys.exit(run_export(export))
