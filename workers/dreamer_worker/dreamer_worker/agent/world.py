"""Acting inside the learned world model, step by step: what it expects to see after each action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dreamer_worker.agent import rssm
from dreamer_worker.agent.layers import Array, Params, cast
from dreamer_worker.agent.rssm import State

if TYPE_CHECKING:
    from dreamer_worker.agent.agent import Agent


class Moment(NamedTuple):
    """What the model expects: the sensors, the reward, and the probability that the episode goes on."""

    sensors: dict[str, np.ndarray]
    reward: float
    goes_on: float


class World:
    """One sequence. It begins with a real observation; from then on there is only the model and its dice."""

    def __init__(self, agent: Agent, seed: int = 0) -> None:
        self._model, self._seed = agent.model, seed
        self._params: Params = cast(agent.train_state.params, self._model.dtype)
        self._begin = jax.jit(self._begun)
        self._next = jax.jit(self._stepped)
        self._state: State | None = None
        self._steps = 0

    def begin(self, obs: dict[str, Any]) -> Moment:
        """Forget everything and look at `obs`."""
        self._steps += 1  # each beginning has dice of its own
        seen = {key: np.asarray(obs[key])[None] for key in self._model.sensors}
        self._state, found = self._begin(self._params, seen, self._steps)
        return self._moment(found)

    def step(self, action: dict[str, Any]) -> Moment:
        """What follows `action`."""
        if self._state is None:
            raise ValueError("The dream has not begun: call begin with an observation.")
        self._steps += 1
        given = {key: np.asarray(action[key])[None] for key in self._model.policy.space}
        self._state, found = self._next(self._params, self._state, given, self._steps)
        return self._moment(found)

    def _begun(self, p: Params, obs: dict[str, Array], count: Array) -> Any:
        size, model = self._model.config.rssm, self._model
        start = rssm.initial(size, 1, model.dtype)
        nothing = model.policy.encode(
            {k: jnp.asarray(s.zeros(1)) for k, s in model.policy.space.items()}, model.dtype.name
        )
        tokens = model.encoder(p["enc"], obs)
        seen = rssm.observe_step(size, p["dyn"], start, nothing, tokens, jnp.ones(1, bool), self._dice(count))
        return seen.state, self._expected(p, seen.state)

    def _stepped(self, p: Params, state: State, action: dict[str, Array], count: Array) -> Any:
        state = self._model.predict_next(p, state, action, self._dice(count))
        return state, self._expected(p, state)

    def _dice(self, count: Array) -> Array:
        size = self._model.config.rssm
        key = jax.random.fold_in(jax.random.key(self._seed), count)
        return jax.random.gumbel(key, (1, size.stoch, size.classes))

    def _expected(self, p: Params, state: State) -> Any:
        model = self._model
        sensors = model.decoder.observations(model.decoder(p["dec"], state.deter, state.stoch))
        reward = model.reward(p["rew"], state.feature).pred()
        return sensors, reward, jax.nn.sigmoid(model.carries_on(p["con"], state.feature))

    def _moment(self, found: Any) -> Moment:
        sensors, reward, goes_on = jax.tree.map(lambda x: np.asarray(x)[0], found)
        spaces = self._model.sensors
        return Moment({k: x.astype(spaces[k].dtype) for k, x in sensors.items()}, float(reward), float(goes_on))
