"""What the model predicts beside what happened: clips of images, and the error per step of every sensor."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from dreamer_worker.agent.layers import Array, Params
from dreamer_worker.agent.model import Model
from dreamer_worker.agent.objective import Batch
from dreamer_worker.agent.rssm import State

SHOWN = 6  # sequences side by side


def open_loop(model: Model, p: Params, batch: Batch, key: Array) -> dict[str, Array]:
    """The first half is rebuilt from what was seen, the second half dreamed, given the real actions.

    One clip per image key. For every sensor the mean loss of its reconstruction at the last step that was seen and 1,
    2, 4 … steps into the dream, `open_loop_error/<key>/seen`, `/1`, `/2` …, over the sequences that do not begin anew.
    """
    length = len(batch.obs["is_first"])
    if length < 2:
        return {}
    half = length // 2
    states = _half_dreamed(model, p, batch.state, batch.obs, batch.actions, key, half)
    raw = model.decoder(p["dec"], states.deter, states.stoch)
    pictures = {name: model.decoder.observations(raw)[name][:, :SHOWN] for name in model.decoder.images}
    clips = {
        f"open_loop/{name}": _clip(batch.obs[name][:, :SHOWN], picture, half) for name, picture in pictures.items()
    }
    return {**clips, **_errors(model.decoder.losses(raw, batch.obs), batch.obs["is_first"], half)}


def _errors(losses: dict[str, Array], first: Array, half: int) -> dict[str, Array]:
    """A new episode in the dreamed half cannot be foreseen: from there on a sequence does not count."""
    goes_on = jnp.concatenate([jnp.ones_like(first[:half]), jnp.cumsum(first[half:], 0) == 0]).astype(jnp.float32)
    steps = {"seen": half - 1}
    steps |= {str(ahead): half - 1 + ahead for ahead in (1, 2, 4, 8, 16, 32, 64) if half - 1 + ahead < len(first)}
    found: dict[str, Array] = {}
    for key, loss in losses.items():
        means = (loss * goes_on).sum(1) / jnp.maximum(1.0, goes_on.sum(1))
        found |= {f"open_loop_error/{key}/{name}": means[step] for name, step in steps.items()}
    return found


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
