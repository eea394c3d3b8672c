"""The recurrent state-space model: a deterministic memory and 32 categorical variables.

    deter' = GRU(deter, stoch, action)      block-diagonal, 8 blocks
    prior(deter')                           what the model expects
    posterior(deter', tokens)               what it sees

Written step by step, for readability. `observation.py` computes the same scan fast.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dreamer_worker.agent.config import Rssm
from dreamer_worker.agent.distributions import Categorical
from dreamer_worker.agent.layers import Array, Init, Params, activate, block_linear, linear, mlp


class State(NamedTuple):
    """Both flat, in the compute dtype: (..., deter) and (..., stoch * classes), the latter one-hot per variable."""

    deter: Array
    stoch: Array

    @property
    def feature(self) -> Array:
        return jnp.concatenate([self.deter, self.stoch], -1)


class Seen(NamedTuple):
    """An observed sequence: the states, and the raw logits of the posterior."""

    state: State
    posterior: Array


def init_rssm(init: Init, rssm: Rssm, actions: int, tokens: int) -> Params:
    stoch, hidden, deter = rssm.stoch * rssm.classes, rssm.hidden, rssm.deter
    return {
        "deter_in": init.normed(init.linear(deter, hidden)),
        "stoch_in": init.normed(init.linear(stoch, hidden)),
        "action_in": init.normed(init.linear(actions, hidden)),
        "hidden": init.normed(init.block_linear(deter + rssm.blocks * 3 * hidden, deter, rssm.blocks)),
        "gates": init.block_linear(deter, 3 * deter, rssm.blocks),
        "prior": init.mlp(deter, hidden, rssm.prior_layers),
        "prior_out": init.linear(hidden, stoch),
        "posterior": init.mlp(deter + tokens, hidden, rssm.posterior_layers),
        "posterior_out": init.linear(hidden, stoch),
    }


def initial(rssm: Rssm, batch: int, dtype: Any) -> State:
    return State(jnp.zeros((batch, rssm.deter), dtype), jnp.zeros((batch, rssm.stoch * rssm.classes), dtype))


def bounded(action: Array) -> Array:
    """Limit actions to a magnitude of one without changing the direction of the gradient."""
    return action / jax.lax.stop_gradient(jnp.maximum(1.0, jnp.abs(action)))


def advance(rssm: Rssm, p: Params, state: State, action: Array) -> Array:
    """The next deter."""
    x = [
        activate(p["deter_in"], linear(p["deter_in"], state.deter)),
        activate(p["stoch_in"], linear(p["stoch_in"], state.stoch)),
        activate(p["action_in"], linear(p["action_in"], bounded(action))),
    ]
    inputs = jnp.concatenate(x, -1)
    blocked = state.deter.reshape((*state.deter.shape[:-1], rssm.blocks, -1))
    shared = jnp.broadcast_to(inputs[..., None, :], (*blocked.shape[:-1], inputs.shape[-1]))
    mixed = jnp.concatenate([blocked, shared], -1)
    hidden = activate(p["hidden"], block_linear(p["hidden"], mixed.reshape((*mixed.shape[:-2], -1))))
    return gated(rssm, block_linear(p["gates"], hidden), state.deter)


def gated(rssm: Rssm, gates: Array, deter: Array) -> Array:
    """A GRU's last step. The thirds of each block are the reset gate, the candidate and the update gate."""
    blocked = gates.reshape((*gates.shape[:-1], rssm.blocks, 3, -1))
    reset, proposal, update = (blocked[..., i, :].reshape(deter.shape) for i in range(3))
    proposal = jnp.tanh(jax.nn.sigmoid(reset) * proposal)
    update = jax.nn.sigmoid(update - 1)
    return update * proposal + (1 - update) * deter


def prior(p: Params, deter: Array) -> Array:
    return linear(p["prior_out"], mlp(p["prior"], deter))


def posterior(p: Params, deter: Array, tokens: Array) -> Array:
    return linear(p["posterior_out"], mlp(p["posterior"], jnp.concatenate([deter, tokens], -1)))


def distribution(rssm: Rssm, logits: Array) -> Categorical:
    shaped = logits.reshape((*logits.shape[:-1], rssm.stoch, rssm.classes))
    return Categorical.mixed(shaped, rssm.unimix, event=1)


def draw(rssm: Rssm, logits: Array, gumbel: Array) -> Array:
    """A one-hot draw, flat, through which gradients reach the logits."""
    chosen = distribution(rssm, logits)
    onehot = jax.nn.one_hot(chosen.sample(gumbel), rssm.classes, dtype=jnp.float32)
    return chosen.straight_through(onehot).astype(logits.dtype).reshape(logits.shape)


def observe_step(
    rssm: Rssm, p: Params, state: State, action: Array, tokens: Array, first: Array, gumbel: Array
) -> Seen:
    """One step: forget at an episode's start, advance, look."""
    keep = (1 - first.astype(state.deter.dtype))[:, None]
    state = State(state.deter * keep, state.stoch * keep)
    deter = advance(rssm, p, state, action * keep)
    logits = posterior(p, deter, tokens)
    return Seen(State(deter, draw(rssm, logits, gumbel)), logits)


def observe(rssm: Rssm, p: Params, state: State, actions: Array, tokens: Array, first: Array, gumbel: Array) -> Seen:
    """A sequence, time on axis 0. `actions[t]` is the one that led to `tokens[t]`."""

    def step(state: State, x: tuple[Array, ...]) -> tuple[State, Seen]:
        seen = observe_step(rssm, p, state, *x)
        return seen.state, seen

    return jax.lax.scan(step, state, (actions, tokens, first, gumbel))[1]


def kl_losses(rssm: Rssm, posterior: Array, prior: Array) -> tuple[Array, Array]:
    """How far the prior is from what was seen, and the other way round; neither below the free nats."""
    seen, expected = distribution(rssm, posterior), distribution(rssm, prior)
    still = jax.lax.stop_gradient
    dynamics = distribution(rssm, still(posterior)).kl(expected)
    representation = seen.kl(distribution(rssm, still(prior)))
    return jnp.maximum(dynamics, rssm.free_nats), jnp.maximum(representation, rssm.free_nats)
