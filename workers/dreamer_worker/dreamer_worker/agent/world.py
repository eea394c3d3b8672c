"""Acting inside the learned world model, step by step: what it expects to see after each action."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dreamer_worker.agent import rssm
from dreamer_worker.agent.layers import Array, Params, cast
from dreamer_worker.agent.model import Model
from dreamer_worker.agent.rssm import State

if TYPE_CHECKING:
    from dreamer_worker.agent.agent import Agent


class Moment(NamedTuple):
    """What the model expects: the sensors, the reward, and the probability that the episode goes on from here."""

    sensors: dict[str, np.ndarray]
    reward: float
    goes_on: float


class World:
    """One sequence. It begins with a real observation; from then on there is only the model and its dice."""

    def __init__(self, agent: Agent, seed: int = 0) -> None:
        self._model, self._key = agent.model, jax.random.key(seed)
        self._params: Params = cast(agent.train_state.params, self._model.dtype)
        self._state: State | None = None
        self._steps = 0

    def begin(self, obs: dict[str, Any]) -> Moment:
        """Forget everything and look at `obs`."""
        self._steps += 1  # each beginning has dice of its own
        seen = {key: np.asarray(obs[key])[None] for key in self._model.sensors}
        self._state, found = _begun(self._model, self._params, seen, self._key, self._steps)
        return self._moment(found)

    def step(self, action: dict[str, Any]) -> Moment:
        """What follows `action`."""
        if self._state is None:
            raise ValueError("The dream has not begun: call begin with an observation.")
        self._steps += 1
        given = {key: np.asarray(action[key])[None] for key in self._model.policy.space}
        self._state, found = _stepped(self._model, self._params, self._state, given, self._key, self._steps)
        return self._moment(found)

    def _moment(self, found: Any) -> Moment:
        sensors, reward, goes_on = jax.tree.map(lambda x: np.asarray(x)[0], found)
        spaces = self._model.sensors
        return Moment({k: x.astype(spaces[k].dtype) for k, x in sensors.items()}, float(reward), float(goes_on))


# Compiled once for a model, not for each episode: an evaluation dreams every one in a world of its own.


@partial(jax.jit, static_argnums=0)
def _begun(model: Model, p: Params, obs: dict[str, Array], key: Array, count: Array) -> Any:
    size = model.config.rssm
    start = rssm.initial(size, 1, model.dtype)
    nothing = model.policy.encode({k: jnp.asarray(s.zeros(1)) for k, s in model.policy.space.items()}, model.dtype.name)
    tokens = model.encoder(p["enc"], obs)
    seen = rssm.observe_step(size, p["dyn"], start, nothing, tokens, jnp.ones(1, bool), _dice(model, key, count))
    return seen.state, _expected(model, p, seen.state)


@partial(jax.jit, static_argnums=0)
def _stepped(model: Model, p: Params, state: State, action: dict[str, Array], key: Array, count: Array) -> Any:
    state = model.predict_next(p, state, action, _dice(model, key, count))
    return state, _expected(model, p, state)


def _dice(model: Model, key: Array, count: Array) -> Array:
    size = model.config.rssm
    return jax.random.gumbel(jax.random.fold_in(key, count), (1, size.stoch, size.classes))


def _expected(model: Model, p: Params, state: State) -> Any:
    sensors = model.decoder.observations(model.decoder(p["dec"], state.deter, state.stoch))
    reward = model.reward(p["rew"], state.feature).pred()
    goes_on, learning = jax.nn.sigmoid(model.carries_on(p["con"], state.feature)), model.config.learning
    if learning.continue_carries_discount:
        goes_on = jnp.minimum(1, goes_on / (1 - 1 / learning.horizon))
    return sensors, reward, goes_on
