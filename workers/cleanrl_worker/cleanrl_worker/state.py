"""The complete state of a script between two turns of its main loop, read from its globals and written back.

Saved are torch modules and optimizers, flax states, replay buffers, running means, queues, tensors that an optimizer
changes in place, and variables that exist before the loop and are assigned in it (next_obs, alpha …). The script itself
rebuilds everything else from the same arguments.
"""

import random
import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from mosaic_sdk.checkpoints import CheckpointError
from numpy.typing import NDArray

from cleanrl_worker import envstate
from cleanrl_worker.checkpoints import Checkpoint, put_weights
from cleanrl_worker.plain import NotPlain, to_plain

_ELAPSED = "elapsed_s"
_ARGS = "args"
_NUMBERS = (bool, int, float, np.generic)
_MEGABYTE = 1 << 20


class State:
    """Reads and writes one script's globals. `changed`: the names that its main loop assigns."""

    def __init__(self, script: dict[str, Any], changed: frozenset[str], buffer_limit_mb: int = 256) -> None:
        self.script = script
        self.changed = changed
        self.known: frozenset[str] = frozenset()  # names that existed when the loop began
        self.buffer_limit_mb = buffer_limit_mb

    def note_names(self) -> None:
        """Call this once everything is set up, before the loop begins."""
        self.known = frozenset(self.script)

    def capture(self) -> dict[str, Any]:
        """All keys of a checkpoint except those that identify the training."""
        left_out: list[str] = []
        envs = envstate.capture(self.script.get("envs"), left_out)
        flax = self._flax()
        return {
            **self.network(),
            "optimizers": {
                **_states(self._of(torch.optim.Optimizer)),
                **{name: _leaves(x) for name, x in flax.items()},
            },
            "counters": {**self._counters(), _ELAPSED: self._elapsed()},
            "tensors": self._tensors(),
            "rng": capture_rng(),
            "buffers": self._buffers(left_out),
            "envs": envs,
            "left_out": left_out,
        }

    def network(self) -> dict[str, Any]:
        """What is needed to act with the script's current policy."""
        flax = {name: _weights(x) for name, x in self._flax().items()}
        modules = {**_states(self._of(torch.nn.Module)), **flax}
        return {"params": self.params(), "modules": modules, "normalisation": self._normalisation()}

    def params(self) -> dict[str, Any]:
        """The arguments that the script uses."""
        args = vars(self.script["args"]) if "args" in self.script else {}
        return {name: value for name, value in args.items() if _is_plain(value)}

    def restore(self, saved: Checkpoint) -> list[str]:
        """Write `saved` into the globals; returns what could not be restored, each with its reason."""
        lost: list[str] = list(saved.left_out)
        flax = self._flax()
        self._require_same("module", {**self._of(torch.nn.Module), **flax}, saved.modules, saved.path)
        self._require_same("optimizer", {**self._of(torch.optim.Optimizer), **flax}, saved.optimizers, saved.path)
        for name, module in self._of(torch.nn.Module).items():
            put_weights(name, module, saved.modules[name], saved.path)
        for name, state in flax.items():
            self.script[name] = _with_leaves(name, state, saved.optimizers[name], saved.path)
        for name, optimizer in self._of(torch.optim.Optimizer).items():
            _put_optimizer(name, optimizer, saved.optimizers[name], saved.path)
        self._put_counters(saved.counters)
        self._put_normalisation(saved.normalisation)
        self._put_buffers(saved, lost)
        is_exact = envstate.restore(self.script.get("envs"), saved.envs, lost)
        self._put_tensors(saved.tensors, with_observations=is_exact)
        restore_rng(saved.rng)
        return lost

    def _of(self, kind: type) -> dict[str, Any]:
        """The objects that the script created before its loop, without further names that the loop gives them."""
        return {name: value for name, value in self.script.items() if isinstance(value, kind) and name in self.known}

    def _flax(self) -> dict[str, Any]:
        train_state = sys.modules.get("flax.training.train_state")
        return self._of(train_state.TrainState) if train_state else {}

    def _counters(self) -> dict[str, Any]:
        names = self.changed & self.known
        return {name: self.script[name] for name in sorted(names) if isinstance(self.script[name], _NUMBERS)}

    def _elapsed(self) -> float:
        return time.time() - float(self.script.get("start_time", time.time()))

    def _tensors(self) -> dict[str, Any]:
        kept = {}
        flax = self._flax()
        for name, value in self.script.items():
            if name in flax or name == _ARGS:
                continue  # the script's own classes, but a state is saved as one, and arguments are those of this run
            is_live = name in self.changed and name in self.known and not isinstance(value, _NUMBERS)
            if name != "envs" and (is_live or _changes_in_place(value)) and _is_plain(value):
                kept[name] = value
            elif _is_scripts_own(value):
                kept[name] = {key: part for key, part in vars(value).items() if _is_plain(part)}
        return kept

    def _normalisation(self) -> dict[str, list[dict[str, Any]]]:
        """Running means of the envs' wrappers, one per env, and those that the script itself has."""
        found = envstate.running_means(self.script.get("envs"))
        found.update({name: [envstate.means_of(x)] for name, x in self.script.items() if envstate.is_running_mean(x)})
        return found

    def _buffers(self, left_out: list[str]) -> dict[str, Any]:
        kept = {}
        for name, buffer in self._replay_buffers().items():
            size = buffer.buffer_size if buffer.full else buffer.pos
            arrays = {key: part[:size] for key, part in _arrays(buffer).items()}
            megabytes = sum(part.nbytes for part in arrays.values()) / _MEGABYTE
            if megabytes > self.buffer_limit_mb:
                left_out.append(
                    f"the replay buffer {name} ({megabytes:.0f} MB, and checkpoint_buffer_mb is {self.buffer_limit_mb})"
                )
            else:
                kept[name] = {"arrays": arrays, "pos": int(buffer.pos), "full": bool(buffer.full)}
        return kept

    def _replay_buffers(self) -> dict[str, Any]:
        buffers = sys.modules.get("stable_baselines3.common.buffers")
        return self._of(buffers.ReplayBuffer) if buffers else {}

    def _put_counters(self, counters: Mapping[str, Any]) -> None:
        self.script.update({name: value for name, value in counters.items() if name in self.changed})
        if "start_time" in self.script:
            # Scripts compute steps per second from it, so the time before the stop must count too.
            self.script["start_time"] = time.time() - float(counters.get(_ELAPSED, 0.0))

    def _put_tensors(self, tensors: Mapping[str, Any], with_observations: bool) -> None:
        for name, value in tensors.items():
            if name == _ARGS:
                continue  # older checkpoints have them here
            here = self.script.get(name)
            if _changes_in_place(here) and isinstance(here, torch.Tensor):
                with torch.no_grad():
                    here.copy_(value)
            elif _is_scripts_own(here):
                vars(here).update(value)
            elif isinstance(here, deque):
                self.script[name] = deque(value, here.maxlen)
            elif with_observations:
                # After a restart of the envs these names already hold the first observation.
                self.script[name] = value.to(here.device) if isinstance(here, torch.Tensor) else value

    def _put_normalisation(self, saved: Mapping[str, list[dict[str, Any]]]) -> None:
        for name, means in saved.items():
            if envstate.is_running_mean(self.script.get(name)):
                envstate.put_means(self.script[name], means[0])
        envstate.put_running_means(self.script.get("envs"), saved)

    def _put_buffers(self, saved: Checkpoint, lost: list[str]) -> None:
        for name, buffer in self._replay_buffers().items():
            kept = saved.buffers.get(name)
            if kept is None:
                self._wait_for_learning(saved, name, lost)
                continue
            for key, part in kept["arrays"].items():
                here = getattr(buffer, key)
                if len(part) > len(here) or part.shape[1:] != here.shape[1:]:
                    raise CheckpointError(
                        f"{saved.path} does not fit: its replay buffer {name}.{key} is {part.shape}, "
                        f"but this run's is {here.shape}. Keep buffer_size as it was."
                    )
                here[: len(part)] = part
            is_full = kept["full"] and len(part) == len(here)
            buffer.pos, buffer.full = (kept["pos"], True) if is_full else (len(part) % len(here), False)

    def _wait_for_learning(self, saved: Checkpoint, name: str, lost: list[str]) -> None:
        """Postpone learning until the buffer has filled again: the script would sample from an empty one."""
        args = self.script["args"]
        if hasattr(args, "learning_starts"):
            args.learning_starts += saved.global_step
            lost.append(f"{name} is refilled: learning continues at step {args.learning_starts}")

    def _require_same(self, what: str, here: Mapping[str, Any], saved: Mapping[str, Any], path: str) -> None:
        if set(here) != set(saved):
            raise CheckpointError(
                f"{path} does not fit: it has the {what}s {_listed(saved)}, but this run has {_listed(here)}."
            )


def capture_rng() -> dict[str, Any]:
    rng = {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        rng["cuda"] = torch.cuda.get_rng_state_all()
    return rng


def restore_rng(rng: Mapping[str, Any]) -> None:
    if "python" in rng:
        random.setstate(rng["python"])
    if "numpy" in rng:
        np.random.set_state(rng["numpy"])
    if "torch" in rng:
        torch.set_rng_state(rng["torch"])
    if torch.cuda.is_available() and len(rng.get("cuda", ())) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(rng["cuda"])


def _states(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: dict(value.state_dict()) for name, value in found.items()}


def _put_optimizer(name: str, optimizer: torch.optim.Optimizer, saved: Any, path: str) -> None:
    try:
        optimizer.load_state_dict(saved)
    except ValueError as error:
        raise CheckpointError(f"{path} does not fit: the optimizer {name}: {error}.") from None


def _weights(state: Any) -> dict[str, Any]:
    """The parts of a flax state that are needed to act: all but the optimizer's."""
    from flax.serialization import to_state_dict  # already imported by the script

    return {name: part for name, part in to_state_dict(state).items() if name != "opt_state"}


def _leaves(state: Any) -> list[Any]:
    """All arrays of a flax state, including its optimizer's, in the order of its tree."""
    from jax.tree_util import tree_leaves

    return list(tree_leaves(state))


def _with_leaves(name: str, state: Any, leaves: list[Any], path: str) -> Any:
    from jax.tree_util import tree_leaves, tree_structure, tree_unflatten

    here = [np.shape(part) for part in tree_leaves(state)]
    there = [np.shape(part) for part in leaves]
    if here != there:
        raise CheckpointError(
            f"{path} does not fit: {name} has arrays of the shapes {there}, but this run's has {here}."
        )
    return tree_unflatten(tree_structure(state), leaves)


def _changes_in_place(value: Any) -> bool:
    """A tensor that an optimizer changes and that is not part of a module (SAC's log_alpha), or a queue of returns."""
    if isinstance(value, torch.Tensor):
        return value.is_leaf and value.requires_grad and not isinstance(value, torch.nn.Parameter)
    return isinstance(value, deque)


def _is_scripts_own(value: Any) -> bool:
    """An object of a small class that the script itself defines (RND's reward filter)."""
    return (
        type(value).__module__ == "__main__"
        and not isinstance(value, (type, torch.nn.Module))
        and (hasattr(value, "__dict__") and not hasattr(value, "reset") and not callable(value))
    )


def _is_plain(value: Any) -> bool:
    try:
        to_plain(value)
    except NotPlain:
        return False
    return True


def _arrays(buffer: Any) -> dict[str, NDArray[Any]]:
    size = buffer.buffer_size
    found = {name: part for name, part in vars(buffer).items() if isinstance(part, np.ndarray) and part.ndim > 1}
    return {name: part for name, part in found.items() if len(part) == size}


def _listed(names: Any) -> str:
    return ", ".join(sorted(names)) or "none"
