"""Clips of what the model predicts: the real sequence, the imagined one, and where they differ."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from dreamer_worker.agent.layers import Array, Params
from dreamer_worker.agent.model import Model
from dreamer_worker.agent.objective import Batch
from dreamer_worker.agent.rssm import State

SHOWN = 6  # sequences side by side


def open_loop(model: Model, p: Params, batch: Batch, key: Array) -> dict[str, Array]:
    """One clip per image key. The first half is rebuilt from what was seen, the second half dreamed."""
    images = model.decoder.images
    length = len(batch.obs["is_first"])
    if not images or length < 2:
        return {}
    obs, actions = (jax.tree.map(lambda x: x[:, :SHOWN], tree) for tree in (batch.obs, batch.actions))
    state = jax.tree.map(lambda x: x[:SHOWN], batch.state)
    states = _half_dreamed(model, p, state, obs, actions, key, length // 2)
    pictures = model.decoder.observations(model.decoder(p["dec"], states.deter, states.stoch))
    return {f"open_loop/{name}": _clip(obs[name], pictures[name], length // 2) for name in images}


def _half_dreamed(
    model: Model, p: Params, state: State, obs: dict[str, Array], actions: dict[str, Array], key: Array, half: int
) -> State:
    size = model.config.rssm
    gumbel = jax.random.gumbel(key, (*obs["is_first"].shape, size.stoch, size.classes))
    first, rest = (jax.tree.map(lambda x, cut=cut: x[cut], (actions, obs)) for cut in (slice(half), slice(half, None)))
    seen = model.observe(p, state, first[0], first[1], gumbel[:half]).state

    def step(state: State, x: tuple[dict[str, Array], Array]) -> tuple[State, State]:
        state = model.predict_next(p, state, *x)
        return state, state

    last = jax.tree.map(lambda x: x[-1], seen)
    _, dreamed = jax.lax.scan(step, last, (rest[0], gumbel[half:]))
    return State(*(jnp.concatenate(pair) for pair in zip(seen, dreamed, strict=True)))


def _clip(real: Array, made: Array, half: int) -> Array:
    wide = [x.astype(jnp.float32) for x in (real, made)]
    difference = ((wide[1] - wide[0]) / 2 + 128).astype(jnp.uint8)
    stacked = jnp.concatenate([real, made, difference], 2)
    # The border shows which half was imagined.
    time, count, height, width, channels = stacked.shape
    mark = jnp.where(jnp.arange(time) < half, 0, 255).astype(jnp.uint8)
    stacked = stacked.at[:, :, :, 0].set(mark[:, None, None, None])
    return stacked.transpose(0, 2, 1, 3, 4).reshape(time, height, count * width, channels)
