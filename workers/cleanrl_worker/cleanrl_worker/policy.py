"""A checkpoint's policy, rebuilt from the network classes of the script that trained it.

The script is imported, not run: under any name other than `__main__` its main part does nothing. The names of the
modules in the checkpoint (`agent`, `actor` or `q_network`) show which of its networks acts.
"""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from mosaic_sdk.checkpoints import CheckpointError
from torch import Tensor

from cleanrl_worker import registry, seams, upstream
from cleanrl_worker.checkpoints import Checkpoint, put_weights
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.gyms import choose_gym
from cleanrl_worker.registry import Algorithm

JAX_STATES = ("q_state", "actor_state", "agent_state")  # see policy_jax.py
ACTING = {"agent": "Agent", "actor": "Actor", "q_network": "QNetwork"}


class Policy:
    """Maps observations to actions, for any number of episodes at once. Each episode has a place in the batch."""

    def __init__(self, network: Any, script: ModuleType, deterministic: bool = False) -> None:
        self.network = network.eval()
        self.deterministic = deterministic
        self._script = script
        self._memory: dict[int, tuple[Tensor, ...]] = {}

    def forget(self, place: int) -> None:
        """Clear the memory of this place: a new episode begins there."""
        self._memory.pop(place, None)

    @torch.no_grad()
    def act(self, observations: Any, places: list[int]) -> Any:
        """One action per observation, as a numpy array."""
        batch = torch.as_tensor(np.asarray(observations), dtype=torch.float32, device=self._device)
        with _greedy(self._script) if self.deterministic else _as_trained():
            actions = self._choose(batch, places)
        return actions.cpu().numpy()

    @property
    def _device(self) -> torch.device:
        return next(self.network.parameters()).device

    def _choose(self, batch: Tensor, places: list[int]) -> Tensor:
        network = self.network
        if self.deterministic and hasattr(network, "best_action"):
            return network.best_action(batch)
        if hasattr(network, "first_memory"):
            return self._choose_remembering(batch, places)
        if hasattr(network, "lstm"):
            return self._choose_with_memory(batch, places)
        if hasattr(network, "get_action_and_value"):
            return network.get_action_and_value(batch)[0]
        if not hasattr(network, "get_action"):
            answer = network(batch)
            return answer if hasattr(network, "action_scale") else answer.argmax(dim=1)
        outputs = network.get_action(batch)
        # The third output of SAC is the mean action; for discrete actions it is their probabilities.
        return outputs[2] if self.deterministic and hasattr(network, "action_scale") else outputs[0]

    def _choose_remembering(self, batch: Tensor, places: list[int]) -> Tensor:
        """Our own networks: `first_memory(count)` and `act(observations, memory)`, with one column per episode."""
        for place in places:
            self._memory.setdefault(place, self.network.first_memory(1))
        joined = zip(*(self._memory[place] for place in places), strict=True)
        action, memory = self.network.act(batch, tuple(torch.cat(parts, dim=1) for parts in joined))
        for column, place in enumerate(places):
            self._memory[place] = tuple(part[:, column : column + 1] for part in memory)
        return action

    def _choose_with_memory(self, batch: Tensor, places: list[int]) -> Tensor:
        lstm = self.network.lstm
        empty = torch.zeros(lstm.num_layers, 1, lstm.hidden_size, device=batch.device)
        states = [self._memory.get(place, (empty, empty)) for place in places]
        state = tuple(torch.cat(parts, dim=1) for parts in zip(*states, strict=True))
        action, _, _, _, state = self.network.get_action_and_value(batch, state, torch.zeros(len(places)).to(batch))
        for column, place in enumerate(places):
            self._memory[place] = (state[0][:, column : column + 1], state[1][:, column : column + 1])
        return action


def load_script(config: CleanRLWorkerConfig) -> tuple[Algorithm, ModuleType]:
    """The algorithm and its script as a module; ConfigError if it does not support the config's environment."""
    algorithm = registry.find(config.algo, config.upstream_path)
    if algorithm.module.startswith("cleanrl_worker."):
        script = importlib.import_module(algorithm.module)
    else:
        choose_gym(algorithm, config.upstream_path)
        script = import_script(algorithm, config.upstream_path)
    seams.prepare(algorithm, config.replace(curriculum_schedule=None))
    return algorithm, script


def load_policy(
    checkpoint: Checkpoint, script: ModuleType, lane: Any, deterministic: bool = False, device: str = "cpu"
) -> Any:
    """The network that acts, with the checkpoint's weights; CheckpointError if they do not fit."""
    if any(name in checkpoint.modules for name in JAX_STATES):
        from cleanrl_worker.policy_jax import JaxPolicy  # jax is installed only in its variant

        return JaxPolicy(checkpoint, script, lane, deterministic)
    name = next((name for name in ACTING if name in checkpoint.modules), "")
    make = getattr(script, ACTING.get(name, ""), None)
    if make is None:
        held = ", ".join(checkpoint.modules) or "nothing"
        raise CheckpointError(f"{checkpoint.path} has no network that acts (agent, actor or q_network); it has {held}.")
    network = make(_as_envs(lane), **other_arguments(make, checkpoint.params))
    put_weights(name, network, checkpoint.modules[name], checkpoint.path)
    return Policy(network.to(device), script, deterministic)


def import_script(algorithm: Algorithm, upstream_path: str = "") -> ModuleType:
    """CleanRL's script as a module. Its gym must have been chosen."""
    path = upstream.find_script(algorithm, upstream_path).path
    return _import_file(f"cleanrl_worker.imported.{algorithm.name}", path)


def _import_file(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _as_envs(lane: Any) -> Any:
    """What a network's constructor reads from its vector environment."""
    from gymnasium.spaces import Box
    from gymnasium.vector.utils import batch_space

    space = lane.action_space
    # An actor stores the scale of the actions in the shape of its single training environment.
    batch = batch_space(space, 1) if isinstance(space, Box) else space
    return SimpleNamespace(
        single_observation_space=lane.observation_space, single_action_space=space, action_space=batch, num_envs=1
    )


def other_arguments(make: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """The other arguments of a network's constructor: n_atoms, v_min, rpo_alpha …"""
    parameters = list(inspect.signature(make).parameters.values())[1:]
    missing = [one.name for one in parameters if one.default is one.empty and one.name not in params]
    if missing:
        raise CheckpointError(f"The checkpoint lacks {', '.join(missing)}, which its network needs.")
    return {one.name: params[one.name] for one in parameters if one.name in params}


@contextmanager
def _as_trained() -> Iterator[None]:
    yield


@contextmanager
def _greedy(script: ModuleType) -> Iterator[None]:
    """Inside the block the script's distributions return their most likely action instead of a sample."""
    kept = {name: getattr(script, name) for name in ("Categorical", "Normal") if hasattr(script, name)}
    for name, kind in kept.items():
        setattr(script, name, type(name, (kind,), {"sample": lambda self, *shape: self.mode}))
    try:
        yield
    finally:
        for name, kind in kept.items():
            setattr(script, name, kind)
