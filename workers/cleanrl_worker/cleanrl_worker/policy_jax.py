"""Policies of CleanRL's JAX scripts: a flax network and the parameters of its training state.

q_state      QNetwork(action_dim[, n_atoms]): the value of each action, or the probabilities of its returns
actor_state  Actor(action_dim, action_scale, action_bias): the action itself
agent_state  Agent(action_dim): the logits of the actions and the value of the state
"""

from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mosaic_sdk.checkpoints import CheckpointError

from cleanrl_worker.checkpoints import Checkpoint


class JaxPolicy:
    """Takes the best action, except that an agent's is sampled unless `deterministic` is set."""

    def __init__(self, checkpoint: Checkpoint, script: ModuleType, lane: Any, deterministic: bool = False) -> None:
        name = next(name for name in ("q_state", "actor_state", "agent_state") if name in checkpoint.modules)
        state = checkpoint.modules[name]
        self._atoms = jnp.asarray(state["atoms"]) if "atoms" in state else None
        network = self._network(name, script, lane)
        self._params = jax.tree_util.tree_map(jnp.asarray, state["params"])
        self._apply = jax.jit(network.apply)
        self._is_actor, self._is_agent = name == "actor_state", name == "agent_state"
        self._deterministic = deterministic
        _require_fit(network, self._params, lane, checkpoint.path)

    def forget(self, place: int) -> None:
        """These networks have no memory."""

    def act(self, observations: Any, places: list[int]) -> Any:
        output = self._apply(self._params, np.asarray(observations))
        if self._is_agent:
            return self._sampled(np.asarray(output[0])).argmax(axis=-1)
        output = np.asarray(output)
        if self._is_actor:
            return output
        return (output if self._atoms is None else (output * np.asarray(self._atoms)).sum(axis=-1)).argmax(axis=-1)

    def _sampled(self, logits: Any) -> Any:
        """The logits with Gumbel noise: their maximum is a sample. Torch's generator, because evaluations seed it."""
        if self._deterministic:
            return logits
        return logits - np.log(-np.log(torch.rand(logits.shape, dtype=torch.float64).numpy()))

    def _network(self, name: str, script: ModuleType, lane: Any) -> Any:
        if name == "agent_state":
            return script.Agent(action_dim=int(lane.action_space.n))
        return self._critic(script, lane) if name == "q_state" else _actor(script, lane)

    def _critic(self, script: ModuleType, lane: Any) -> Any:
        more = {} if self._atoms is None else {"n_atoms": len(self._atoms)}
        return script.QNetwork(action_dim=int(lane.action_space.n), **more)


def _actor(script: ModuleType, lane: Any) -> Any:
    space = lane.action_space
    return script.Actor(
        action_dim=int(np.prod(space.shape)),
        action_scale=jnp.asarray((space.high - space.low) / 2.0),
        action_bias=jnp.asarray((space.high + space.low) / 2.0),
    )


def _require_fit(network: Any, params: Any, lane: Any, path: str) -> None:
    sample = jnp.zeros((1, *lane.observation_space.shape))
    wanted = jax.eval_shape(network.init, jax.random.PRNGKey(0), sample)
    here, there = (_shapes(tree) for tree in (wanted, params))
    for name in sorted({*here, *there}):
        if here.get(name) != there.get(name):
            raise CheckpointError(
                f"{path} does not fit: {name} is {there.get(name, 'missing')} and must be {here.get(name, 'left out')}."
            )


def _shapes(tree: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): tuple(leaf.shape) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
