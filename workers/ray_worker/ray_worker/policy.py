"""A checkpoint's policies: the networks alone, without the algorithm and without a Ray instance."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from mosaic_sdk.checkpoints import Checkpoint, CheckpointError

from ray_worker import checkpoint
from ray_worker.build import policy_of, quieten
from ray_worker.config import RayWorkerConfig

OBS, STATE_IN, STATE_OUT, ACTIONS, LOGITS = "obs", "state_in", "state_out", "actions", "action_dist_inputs"
_NEVER = -1e9  # the logit of an action that the mask forbids


class Policies:
    """Chooses an action for each agent of an environment. A single agent has the name ""."""

    def __init__(self, found: Checkpoint, config: RayWorkerConfig) -> None:
        from ray.rllib.core.rl_module.rl_module import RLModule

        quieten()
        folders = checkpoint.modules_in(found)
        if not folders:
            raise CheckpointError(f"{found.path} has no policy in {checkpoint.MODULES}.")
        self._config, self._path = config, found.path
        self._modules = {name: RLModule.from_checkpoint(str(path)) for name, path in folders.items()}
        self._states: dict[str, Any] = {}

    def begin(self, seed: int | None, agent: str | None = None) -> None:
        """Forget what recurrent networks remember of an agent, or of all."""
        if seed is not None:
            torch.manual_seed(seed)
        if agent is None:
            self._states.clear()
        else:
            self._states.pop(agent, None)

    @torch.no_grad()
    def act(self, observation: Any, agent: str = "", mask: Any = None) -> Any:
        """The action, as the environment takes it."""
        module = self.module_of(agent)
        outputs = module.forward_inference(self._batch(module, observation, agent))
        if STATE_OUT in outputs:
            self._states[agent] = outputs[STATE_OUT]
        is_sequence = bool(module.is_stateful())
        if ACTIONS in outputs:  # value-based: the best one
            action = _first(outputs[ACTIONS], is_sequence)
        else:
            action = self._drawn(module, _masked(_first(outputs[LOGITS], is_sequence), mask))
        return _as_action(action, module.action_space)

    def module_of(self, agent: str) -> Any:
        name = policy_of(self._config, agent)
        if name not in self._modules:
            known = ", ".join(self._modules)
            raise CheckpointError(f"{self._path} has no policy {name} for agent {agent!r}; it has {known}.")
        return self._modules[name]

    def _batch(self, module: Any, observation: Any, agent: str) -> dict[str, Any]:
        seen = torch.as_tensor(np.asarray(observation, np.float32))[None]
        if not module.is_stateful():
            return {OBS: seen}
        if agent not in self._states:
            self._states[agent] = _batched(module.get_initial_state())
        return {OBS: seen[None], STATE_IN: self._states[agent]}

    def _drawn(self, module: Any, logits: Any) -> Any:
        distribution = module.get_inference_action_dist_cls().from_logits(logits[None])
        if self._config.eval_deterministic:
            distribution = distribution.to_deterministic()
        return _first(distribution.sample(), False)


def _first(values: Any, is_sequence: bool) -> Any:
    """The only element of a batch, and of the only step in it."""
    if isinstance(values, Mapping):
        return {key: _first(part, is_sequence) for key, part in values.items()}
    if isinstance(values, tuple):
        return tuple(_first(part, is_sequence) for part in values)
    return values[0, 0] if is_sequence and values.ndim > 1 else values[0]


def _batched(state: Any) -> Any:
    if isinstance(state, Mapping):
        return {key: _batched(part) for key, part in state.items()}
    return torch.as_tensor(np.asarray(state), dtype=torch.float32)[None]


def _masked(logits: Any, mask: Any) -> Any:
    """Only a mask with one element for each logit says something about them."""
    allowed = None if mask is None else torch.as_tensor(np.asarray(mask)).bool()
    return logits if allowed is None or allowed.shape != logits.shape else logits.masked_fill(~allowed, _NEVER)


def _as_action(action: Any, space: Any) -> Any:
    """RLlib's policies choose continuous actions between -1 and 1, and its env runners scale them like this."""
    from ray.rllib.utils.numpy import convert_to_numpy
    from ray.rllib.utils.spaces.space_utils import get_base_struct_from_space, unsquash_action

    plain = unsquash_action(convert_to_numpy(action), get_base_struct_from_space(space))
    return int(plain) if space.shape == () and hasattr(space, "n") else plain
