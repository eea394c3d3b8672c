"""The complete state of a training in one file, written atomically and read without running any of its code.

checkpoints/checkpoint-000000050000.pt              one per save; the number is the step
checkpoints/checkpoint-000000050000.pt.commit.json  the settings in force and the file's size (mosaic_sdk.checkpoints)
checkpoints/best/                                   the one with the best evaluation (best.py)

{"format": 1, "algo": "dqn", "env_id": "CartPole-v1", "global_step": 50000, "loop": 50000, "upstream": "1.2.0",
 "params":        {"learning_rate": 2.5e-4, …}       the script's own arguments
 "modules":       {"q_network": state_dict, …}       every torch module among the script's globals, by name
 "optimizers":    {"optimizer": state_dict, …}
 "counters":      {"epsilon": 0.3, …}                 plain numbers among its globals
 "tensors":       {"next_obs": …, "log_alpha": …}     tensors and arrays among its globals
 "normalisation": {"obs_rms": [{"mean", "var", "count"}, … one per env], "return_rms": […]}
 "rng":           {"python", "numpy", "torch", "cuda"}
 "buffers":       {"rb": …}                           replay buffers that are small enough
 "envs":          [[state of each layer, outermost first], … one per env]
 "curriculum":    [{"env_id", "condition"}, …]        its stages, if any; env_id is then the current stage's
 "left_out":      ["…"]}                              what could not be saved, each with its reason
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from mosaic_sdk import checkpoints, files
from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.names import COMMIT_FILE

from cleanrl_worker import WORKER
from cleanrl_worker.agents import recognise
from cleanrl_worker.plain import from_plain, to_plain

FORMAT = 1
PATTERN = "checkpoint-*.pt"
UPSTREAM_SUFFIX = ".cleanrl_model"
Weights = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """The content of a file written by `save_checkpoint`."""

    algo: str
    env_id: str
    global_step: int
    modules: dict[str, Weights]
    optimizers: dict[str, Any] = field(default_factory=dict)
    rng: dict[str, Any] = field(default_factory=dict)
    counters: dict[str, Any] = field(default_factory=dict)
    normalisation: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    loop: int = 0  # the number of the main loop's next iteration
    tensors: dict[str, Any] = field(default_factory=dict)
    buffers: dict[str, Any] = field(default_factory=dict)
    envs: list[Any] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    upstream: str = ""
    curriculum: list[dict[str, str]] = field(default_factory=list)  # its stages; empty without a curriculum
    path: str = ""

    def require(self, algo: str = "", env_id: str = "") -> None:
        """CheckpointError if it belongs to another algorithm or environment. An upstream model states neither.

        A checkpoint of a curriculum belongs to all of its environments, although it is labelled with the current one.
        """
        env_id = "" if any(stage["env_id"] == env_id for stage in self.curriculum) else env_id
        for name, requested, found in (("algorithm", algo, self.algo), ("environment", env_id, self.env_id)):
            if requested and found and requested != found:
                raise CheckpointError(
                    f"{self.path} is a checkpoint of the {name} {found}, but this run's is {requested}. "
                    f"Set {'algo' if name == 'algorithm' else 'env_id'}={found}, or choose another checkpoint."
                )


_REQUIRED = {"algo": str, "env_id": str, "global_step": int, "modules": dict}
_OWN = {part.name for part in fields(Checkpoint)} - {"path"}


def save_checkpoint(folder: str | Path, state: Mapping[str, Any], settings: Mapping[str, Any] | None = None) -> Path:
    """Write `state` (keys of Checkpoint) atomically into `folder`, and beside it the run's `settings`."""
    unknown = set(state) - _OWN
    if unknown:
        raise ValueError(f"a checkpoint has no {', '.join(sorted(unknown))}")
    step = int(state["global_step"])
    path = Path(folder) / PATTERN.replace("*", f"{step:012d}")
    document = {"format": FORMAT, **{name: to_plain(value) for name, value in state.items()}}
    with files.atomic_file(path) as file:
        torch.save(document, file)
        # An older commit.json does not fit the new file. Without one the file still counts as a checkpoint.
        path.with_name(f"{path.name}.{COMMIT_FILE}").unlink(missing_ok=True)
    algo, env_id = (str(state.get(name, "")) for name in ("algo", "env_id"))
    checkpoints.commit(path, worker=WORKER, step=step, format=FORMAT, settings=settings or {}, algo=algo, env_id=env_id)
    return path


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Load the checkpoint at `path`: a file, the newest one of a run's folder, the one in its folder checkpoints/best,
    or a model written by upstream's --save-model."""
    found = checkpoints.find(path, PATTERN)
    found.require(worker=WORKER, format=FORMAT)
    file = Path(found.path).resolve()
    document = _read(file)
    if file.suffix == UPSTREAM_SUFFIX:
        return _upstream_model(document, file)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        kind = document.get("format", "none") if isinstance(document, dict) else type(document).__name__
        raise CheckpointError(f"{file} is not a checkpoint of this worker: its format is {kind}, not {FORMAT}.")
    keys = {name: from_plain(document[name]) for name in _OWN if name in document}
    for name, expected in _REQUIRED.items():
        if not isinstance(keys.get(name), expected):
            raise CheckpointError(
                f"{file} is not a complete checkpoint: its {name} is {type(keys.get(name)).__name__}."
            )
    return _with_agent(Checkpoint(**keys, path=str(file)))


def _with_agent(found: Checkpoint) -> Checkpoint:
    """Older checkpoints of our ppo have no `agent`; the names of their weights show which network it is."""
    if found.algo == "ppo" and "agent" in found.modules and "agent" not in found.params:
        return replace(found, params={**found.params, "agent": recognise(found.modules["agent"])})
    return found


def put_weights(name: str, module: torch.nn.Module, saved: Weights, path: str) -> None:
    """Load `saved` into `module`; CheckpointError if they do not fit, and the module is unchanged."""
    here = module.state_dict()
    differences = [f"{key} is missing" for key in here if key not in saved]
    differences += [f"{key} is not in this run's network" for key in saved if key not in here]
    differences += [
        f"{key} is {tuple(saved[key].shape)} and must be {tuple(part.shape)}"
        for key, part in here.items()
        if key in saved and saved[key].shape != part.shape
    ]
    if differences:
        more = f", and {len(differences) - 3} more" if len(differences) > 3 else ""
        raise CheckpointError(f"{path} does not fit: in {name}, {', '.join(differences[:3])}{more}.")
    module.load_state_dict(saved)


def _read(file: Path) -> Any:
    try:
        # Only weights: a pickle from another program can run any code.
        return torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror}.") from None
    except Exception:  # noqa: BLE001  # on a damaged file torch's unpickler and zip reader raise almost anything
        raise CheckpointError(f"{file} is damaged or not a checkpoint: it does not contain only weights.") from None


def _upstream_model(document: Any, file: Path) -> Checkpoint:
    """dqn writes only the network's weights, c51 {"model_weights": …, "args": …}. JAX models are not supported."""
    weights = document.get("model_weights", document) if isinstance(document, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(part, torch.Tensor) for part in weights.values()):
        raise CheckpointError(f"{file} does not hold the weights of a torch network.")
    args = document.get("args")
    params = dict(args) if isinstance(args, dict) else {}
    return Checkpoint("", str(params.get("env_id", "")), 0, {"q_network": dict(weights)}, params=params, path=str(file))
