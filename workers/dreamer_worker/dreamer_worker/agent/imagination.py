"""Acting inside the model: from every given state, some steps ahead.

No gradient passes through it, unless `learning.actor_gradient` is `dynamics`: then those of the states reach the policy
through the actions, by the plain path.

The policy, the GRU and the prior all start with a product of deter: in the fast path it is one product for the three,
computed together with deter, and the same for stoch.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from dreamer_worker.agent import observation, rssm
from dreamer_worker.agent.config import Rssm
from dreamer_worker.agent.devices import shared
from dreamer_worker.agent.heads import PolicyHead, sample
from dreamer_worker.agent.layers import Array, Params, linear, mlp_after
from dreamer_worker.agent.rssm import State

Actions = dict[str, Array]
Carry = tuple[Array, State, Array]  # the features so far, the state, its first products


class Dream(NamedTuple):
    """Imagined steps, time on axis 0: one more state than actions."""

    state: State
    actions: Actions

    @property
    def feature(self) -> Array:
        return self.state.feature


class Noise(NamedTuple):
    """The random draws of an imagined sequence, time on axis 0."""

    gumbel: Array
    actions: Actions


def noise_of(size: Rssm, head: PolicyHead, key: Array, steps: int, count: int) -> Noise:
    latent_key, action_key = jax.random.split(key)
    gumbel = jax.random.gumbel(latent_key, (steps, count, size.stoch, size.classes))
    return Noise(gumbel, head.noise(action_key, steps, count))


def imagine(size: Rssm, head: PolicyHead, p: Params, start: State, noise: Noise) -> Dream:
    def step(state: State, dice: Noise) -> tuple[State, tuple[State, Actions]]:
        actions = sample(head(p["pol"], jax.lax.stop_gradient(state.feature)), dice.actions)
        encoded = head.encode(actions, state.deter.dtype.name)
        deter = rssm.advance(size, p["dyn"], state, encoded)
        state = State(deter, rssm.draw(size, rssm.prior(p["dyn"], deter), dice.gumbel))
        return state, (state, actions)

    return _dream(start, *jax.lax.scan(step, start, noise)[1])


def imagine_fast(
    size: Rssm, head: PolicyHead, p: Params, start: State, noise: Noise, unroll: int, kernels: str = "xla"
) -> Dream:
    """As `imagine`. `kernels`: who makes them, see `kernels.py`."""
    if kernels != "xla":
        # Imported when used: not every JAX has what they are written in.
        from dreamer_worker.agent import small_dream

        if small_dream.fits(size, head, len(start.deter)):
            feature, actions = small_dream.dream(size, head, p, start, noise, kernels == "interpreted")
            return Dream(_state_in(size, feature), actions)
    dyn, pol, dtype, units = p["dyn"], p["pol"], start.deter.dtype, head.nets.units
    first, prior = pol["body"]["layer0"], dyn["prior"]["layer0"]
    of_deter = [prior["kernel"], first["kernel"][: size.deter], dyn["deter_in"]["kernel"]]
    of_stoch = [first["kernel"][size.deter :], dyn["stoch_in"]["kernel"]]
    deter_kernel = jnp.concatenate(of_deter, -1).astype(dtype)
    stoch_kernel = jnp.concatenate(of_stoch, -1).astype(dtype)
    deter_bias = jnp.concatenate([prior["bias"], first["bias"], dyn["deter_in"]["bias"]]).astype(dtype)
    stoch_bias = dyn["stoch_in"]["bias"].astype(dtype)
    hidden_kernel = observation.hidden_of(size, dyn, dtype)

    def ahead_of(deter: Array) -> tuple[Array, Array]:
        product = deter @ deter_kernel + deter_bias
        return product[..., : size.hidden], product[..., size.hidden :]

    def step(carry: Carry, given: tuple[Array, Noise]) -> tuple[Carry, Actions]:
        (feature, state, ahead), (t, dice) = carry, given
        of_stoch = state.stoch @ stoch_kernel
        policy = head.read(pol, mlp_after(pol["body"], ahead[..., :units] + of_stoch[..., :units]))
        actions = sample(policy, dice.actions)
        encoded = head.encode(actions, dtype.name)
        products = ahead[..., units:], of_stoch[..., units:] + stoch_bias
        deter = observation.advance_after(size, dyn, hidden_kernel, state.deter, products, encoded)
        expected, ahead = ahead_of(deter)
        logits = linear(dyn["prior_out"], mlp_after(dyn["prior"], expected))
        state = State(deter, observation.draw(size, logits, dice.gumbel))
        return (put(feature, state, t + 1), state, ahead), actions

    def put(feature: Array, state: State, t: Array | int) -> Array:
        feature = jax.lax.dynamic_update_slice(feature, state.deter[None], (t, 0, 0))
        return jax.lax.dynamic_update_slice(feature, state.stoch[None], (t, 0, size.deter))

    # Every state is written where the heads read it: to put all of them together at the end would copy them twice.
    steps, (count, width) = len(noise.gumbel), start.feature.shape
    feature = shared(put(jnp.zeros((steps + 1, count, width), dtype), start, 0), axis=1)
    carry: Carry = feature, start, ahead_of(start.deter)[1]
    carry, actions = jax.lax.scan(step, carry, (jnp.arange(steps), noise), unroll=unroll)
    return Dream(_state_in(size, carry[0]), actions)


def _state_in(size: Rssm, feature: Array) -> State:
    return State(feature[..., : size.deter], feature[..., size.deter :])


def _dream(start: State, states: State, actions: Actions) -> Dream:
    return Dream(jax.tree.map(lambda one, rest: jnp.concatenate([one[None], rest]), start, states), actions)
