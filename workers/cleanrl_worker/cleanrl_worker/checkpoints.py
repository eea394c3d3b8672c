"""A training's whole state in one file, written atomically and read without running any code of its own.

checkpoints/checkpoint-000000050000.pt      one per save; the number is the step
checkpoints/best/                           the one that scored best (best.py)

{"format": 1, "algo": "dqn", "env_id": "CartPole-v1", "global_step": 50000, "loop": 50000, "upstream": "1.2.0",
 "params":        {"learning_rate": 2.5e-4, …}       the script's own arguments
 "modules":       {"q_network": state_dict, …}       every torch module among the script's globals, by its name
 "optimizers":    {"optimizer": state_dict, …}
 "counters":      {"epsilon": 0.3, …}                 plain numbers among its globals
 "tensors":       {"next_obs": …, "log_alpha": …}     tensors and arrays among its globals
 "normalisation": {"obs_rms": [{"mean", "var", "count"}, … one per env], "return_rms": […]}
 "rng":           {"python", "numpy", "torch", "cuda"}
 "buffers":       {"rb": …}                           replay buffers, where they are small enough
 "envs":          [[state of each layer, outermost first], … one per env]
 "curriculum":    [{"env_id", "condition"}, …]        its stages, if it has any; env_id is then the current one's
 "left_out":      ["…"]}                              what could not be kept, each with its reason
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from mosaic_sdk.config import ConfigError

from cleanrl_worker.agents import recognise
from cleanrl_worker.plain import from_plain, to_plain

FORMAT = 1
SUFFIX = ".pt"
UPSTREAM_SUFFIX = ".cleanrl_model"
BEST, BEST_FILE = "best", "best.json"  # the folder among a run's checkpoints, and what is said of the one in it
Weights = dict[str, torch.Tensor]


class CheckpointError(ConfigError):
    """A checkpoint that cannot be used; the text says which and what differs."""


@dataclass(frozen=True)
class Checkpoint:
    """What a file of `save_checkpoint` holds."""

    algo: str
    env_id: str
    global_step: int
    modules: dict[str, Weights]
    optimizers: dict[str, Any] = field(default_factory=dict)
    rng: dict[str, Any] = field(default_factory=dict)
    counters: dict[str, Any] = field(default_factory=dict)
    normalisation: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    loop: int = 0  # the number of the main loop's next turn
    tensors: dict[str, Any] = field(default_factory=dict)
    buffers: dict[str, Any] = field(default_factory=dict)
    envs: list[Any] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    upstream: str = ""
    curriculum: list[dict[str, str]] = field(default_factory=list)  # its stages; empty: there was none
    path: str = ""

    def require(self, algo: str = "", env_id: str = "") -> None:
        """CheckpointError when it is of another algorithm or environment; an upstream model says neither.

        A checkpoint of a curriculum is of each of its environments, though it is labelled with the current one's name.
        """
        env_id = "" if any(stage["env_id"] == env_id for stage in self.curriculum) else env_id
        for name, wanted, found in (("algorithm", algo, self.algo), ("environment", env_id, self.env_id)):
            if wanted and found and wanted != found:
                raise CheckpointError(
                    f"{self.path} is a checkpoint of the {name} {found}, and this run is {wanted}. "
                    f"Give one of {wanted}, or set {'algo' if name == 'algorithm' else 'env_id'}={found}."
                )


_WANTED = {"algo": str, "env_id": str, "global_step": int, "modules": dict}
_OWN = {part.name for part in fields(Checkpoint)} - {"path"}


def save_checkpoint(folder: str | Path, state: Mapping[str, Any]) -> Path:
    """Write `state` (keys of Checkpoint) whole into `folder`; whoever reads sees all of it or nothing."""
    strange = set(state) - _OWN
    if strange:
        raise ValueError(f"a checkpoint has no {', '.join(sorted(strange))}")
    path = Path(folder) / f"checkpoint-{int(state['global_step']):012d}{SUFFIX}"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"format": FORMAT, **{name: to_plain(value) for name, value in state.items()}}
    temp = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temp, "wb") as file:
            torch.save(document, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temp, path)
    finally:
        temp.unlink(missing_ok=True)
    return path


def load_checkpoint(path: str | Path) -> Checkpoint:
    """The checkpoint in the file `path`, the newest one of a run's folder, the one in its folder checkpoints/best, or
    one that upstream's --save-model wrote."""
    file = _file_at(Path(path)).resolve()
    document = _read(file)
    if file.suffix == UPSTREAM_SUFFIX:
        return _upstream_model(document, file)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format", "none") if isinstance(document, dict) else type(document).__name__
        raise CheckpointError(f"{file} is no checkpoint of this worker (format {found}, and {FORMAT} is read).")
    keys = {name: from_plain(document[name]) for name in _OWN if name in document}
    for name, kind in _WANTED.items():
        if not isinstance(keys.get(name), kind):
            raise CheckpointError(f"{file} is no whole checkpoint: its {name} is {type(keys.get(name)).__name__}.")
    return _with_agent(Checkpoint(**keys, path=str(file)))


def _with_agent(found: Checkpoint) -> Checkpoint:
    """Checkpoints of our ppo that were written before it had `agent` are told apart by the names of their weights."""
    if found.algo == "ppo" and "agent" in found.modules and "agent" not in found.params:
        return replace(found, params={**found.params, "agent": recognise(found.modules["agent"])})
    return found


def newest(folder: Path) -> "Path | None":
    """The checkpoint with the most steps; the numbers in the names have one width."""
    found = sorted(folder.glob(f"checkpoint-*{SUFFIX}"))
    return found[-1] if found else None


def put_weights(name: str, module: torch.nn.Module, saved: Weights, path: str) -> None:
    """Load `saved` into `module`, or raise CheckpointError that says what differs and leave the module as it was."""
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


def _file_at(path: Path) -> Path:
    if not path.exists():
        raise CheckpointError(f"There is no checkpoint {path}.")
    if not path.is_dir():
        return path
    file = _best(path) or newest(path) or newest(path / "checkpoints")
    if file is None:
        raise CheckpointError(f"The folder {path} holds no checkpoint.")
    return file


def _best(folder: Path) -> Path | None:
    """The one that best.json names, if this is the folder of the best: while a better one is written there are two."""
    try:
        file = folder / str(json.loads((folder / BEST_FILE).read_text(encoding="utf-8"))["path"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return file if file.is_file() else None


def _read(file: Path) -> Any:
    try:
        # Only weights: a pickle of somebody else's may run anything.
        return torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror}.") from None
    except Exception:  # noqa: BLE001  # on a damaged file torch's unpickler and zip reader raise almost anything
        raise CheckpointError(f"{file} is damaged, or no checkpoint: it holds more or less than weights.") from None


def _upstream_model(document: Any, file: Path) -> Checkpoint:
    """dqn writes the network's weights alone, c51 {"model_weights": …, "args": …}; JAX scripts write their own kind."""
    weights = document.get("model_weights", document) if isinstance(document, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(part, torch.Tensor) for part in weights.values()):
        raise CheckpointError(f"{file} holds no weights of a torch network.")
    args = document.get("args")
    params = dict(args) if isinstance(args, dict) else {}
    return Checkpoint("", str(params.get("env_id", "")), 0, {"q_network": dict(weights)}, params=params, path=str(file))
