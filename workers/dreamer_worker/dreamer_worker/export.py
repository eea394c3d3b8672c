"""python -m dreamer_worker.export CHECKPOINT FOLDER: the agent's parameters as safetensors, and a policy in numpy.

The names are the paths of the agent's modules: `params/dyn/gates/kernel`. JAX is not needed to read them, nor to act:
policy.py in the folder needs numpy alone (`numpy_policy.py`), and policy.json tells it sizes and spaces.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mosaic_sdk.checkpoints import Checkpoint
from mosaic_sdk.export import WEIGHTS, Exported, run_export, write_safetensors
from mosaic_sdk.files import write_json

from dreamer_worker import numpy_policy, settings
from dreamer_worker.agent.spaces import BOOKKEEPING, Spaces
from dreamer_worker.checkpoint import FORMAT, WORKER, read_arrays

PARAMS = "params/"
POLICY, ABOUT = "policy.py", "policy.json"
_USAGE = """\
from policy import Policy  # beside the weights; needs numpy alone

policy = Policy(".")
policy.reset()
action = policy.act({{{sensors}}})"""
_WEIGHTS_USAGE = """\
from safetensors.numpy import load_file

params = load_file("{file}")  # world model, actor and critic, by the paths of the agent's modules"""


def export(checkpoint: Checkpoint, folder: str) -> Exported:
    checkpoint.require(worker=WORKER, format=FORMAT)
    saved = read_arrays(Path(checkpoint.path) / "agent.npz")
    params = {name: array for name, array in saved.items() if name.startswith(PARAMS)}
    write_safetensors(os.path.join(folder, WEIGHTS), params, {"format": "np"})
    left_out = ["the optimizer's moments, the slow critic, the return scale and the replay: what only a resume needs"]
    files = {WEIGHTS: "the parameters of world model, actor and critic"}
    usage = _WEIGHTS_USAGE.format(file=WEIGHTS)
    try:
        about = describe(settings.of_checkpoint(str(checkpoint.path)))
    except Exception as error:  # noqa: BLE001  an env may fail in any way; the weights are of use without it
        left_out.append(f"the policy in numpy: its env could not be made here ({error})")
    else:
        write_policy(folder, about)
        files |= {POLICY: "the policy in numpy, without JAX", ABOUT: "its sizes and the spaces of its env"}
        usage = _USAGE.format(sensors=", ".join(f'"{key}": …' for key in about["obs"]))
    return Exported("dreamer", files, usage, tuple(left_out), "dreamerv3")


def describe(stored: Mapping[str, Any]) -> dict[str, Any]:
    """policy.json, from the settings stored with a checkpoint."""
    from dreamer_worker.agent.config import AgentConfig
    from dreamer_worker.config import DreamerConfig
    from dreamer_worker.envs import make_env

    config = DreamerConfig.from_dict({"run_id": "export", **stored}).resolved()
    env = make_env(config.env, **config.env_options)
    try:
        return about(AgentConfig.from_dict(config.agent_settings()), env.obs_space, env.act_space)
    finally:
        env.close()


def about(config: Any, obs_space: Spaces, act_space: Spaces) -> dict[str, Any]:
    import re

    names = [key for key in obs_space if key not in BOOKKEEPING and not key.startswith("log/")]
    seen = {key: obs_space[key].to_dict() for key in sorted(names) if re.fullmatch(config.encode, key)}
    act = {key: space.to_dict() for key, space in act_space.items()}
    return {"version": 1, "obs": seen, "act": act, "rssm": asdict(config.rssm), "nets": asdict(config.nets)}


def write_policy(folder: str, about: Mapping[str, Any]) -> None:
    write_json(os.path.join(folder, ABOUT), dict(about))
    shutil.copyfile(str(numpy_policy.__file__), os.path.join(folder, POLICY))


if __name__ == "__main__":
    sys.exit(run_export(export))
