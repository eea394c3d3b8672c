"""LaProp with adaptive gradient clipping: the gradient is normalised before momentum, not after."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dreamer_worker.agent.config import Optimizer

Array = jax.Array


class Moments(NamedTuple):
    """The mean of the normalised gradient, the mean of its square, and how many updates made them."""

    mean: Any
    square: Any
    updates: Array

    @classmethod
    def initial(cls, params: Any) -> Moments:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return cls(zeros, jax.tree.map(jnp.zeros_like, params), jnp.zeros((), jnp.int32))


@jax.named_scope("optimizer")
def step(opt: Optimizer, params: Any, grads: Any, moments: Moments) -> tuple[Any, Moments, dict[str, Array]]:
    """New parameters, new moments, and metrics."""
    updates = moments.updates + 1
    bias1 = 1 - opt.beta1 ** updates.astype(jnp.float32)
    bias2 = 1 - opt.beta2 ** updates.astype(jnp.float32)
    # The first update of a warm-up from zero moves nothing, as in the reference.
    rate = opt.lr * jnp.minimum(1.0, (updates - 1) / opt.warmup) if opt.warmup else jnp.asarray(opt.lr)
    sizes = jax.tree.map(lambda g: jnp.sum(jnp.square(g)), grads)

    def clipped(grad: Array, size: Array, param: Array) -> Array:
        limit = opt.agc * jnp.maximum(opt.smallest_norm, jnp.linalg.norm(param.reshape(-1)))
        return grad / jnp.maximum(1.0, jnp.sqrt(size) / limit)

    def square(old: Array, grad: Array) -> Array:
        return opt.beta2 * old + (1 - opt.beta2) * jnp.square(grad)

    def mean(old: Array, grad: Array, squared: Array) -> Array:
        return opt.beta1 * old + (1 - opt.beta1) * grad / (jnp.sqrt(squared / bias2) + opt.eps)

    grads = jax.tree.map(clipped, grads, sizes, params)
    squares = jax.tree.map(square, moments.square, grads)
    means = jax.tree.map(mean, moments.mean, grads, squares)
    moved = jax.tree.map(lambda param, mean: param - rate * mean / bias1, params, means)
    stats = {"opt/grad_norm": jnp.sqrt(sum(jax.tree.leaves(sizes))), "opt/rate": rate}
    return moved, Moments(means, squares, updates), stats
