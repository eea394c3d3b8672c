"""LaProp with adaptive gradient clipping: the gradient is normalised before momentum, not after."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dreamer_worker.agent.config import Optimizer

Array = jax.Array
WIDTH = 128
SMALL = 1 << 18  # elements of one array


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

    def factor(size: Array, square: Array) -> Array:
        """What clips a gradient of this size, given the sum of the parameter's squares."""
        limit = opt.agc * jnp.maximum(opt.smallest_norm, jnp.sqrt(square))
        return 1 / jnp.maximum(1.0, jnp.sqrt(size) / limit)

    def square(old: Array, grad: Array) -> Array:
        return opt.beta2 * old + (1 - opt.beta2) * jnp.square(grad)

    def mean(old: Array, grad: Array, squared: Array) -> Array:
        return opt.beta1 * old + (1 - opt.beta1) * grad / (jnp.sqrt(squared / bias2) + opt.eps)

    table = Table(params)
    old, grads, means, squares = (table.rows(tree) for tree in (params, grads, moments.mean, moments.square))
    sizes, weights = (table.sums(jax.tree.map(jnp.square, rows)) for rows in (grads, old))
    grads = jax.tree.map(jnp.multiply, grads, table.spread(jax.tree.map(factor, sizes, weights)))
    squares = jax.tree.map(square, squares, grads)
    means = jax.tree.map(mean, means, grads, squares)
    moved = jax.tree.map(lambda param, mean: param - rate * mean / bias1, old, means)
    # Computed once, before it is cut: else the compiler computes it anew for every array.
    moved, means, squares = jax.lax.optimization_barrier((moved, means, squares))  # type: ignore[no-untyped-call]
    stats = {"opt/grad_norm": jnp.sqrt(sum(size.sum() for size in sizes)), "opt/rate": rate}
    return table.tree(moved), Moments(table.tree(means), table.tree(squares), updates), stats


class Table:
    """The small arrays of a tree as the rows of one, so that a kernel works on all of them; the large ones as they are.

    An array begins at a row of its own, and its last row is filled with zeros.
    """

    def __init__(self, template: Any) -> None:
        leaves, self._tree = jax.tree.flatten(template)
        self._shapes = [leaf.shape for leaf in leaves]
        self._counts = [-(-leaf.size // WIDTH) if leaf.size <= SMALL else 0 for leaf in leaves]
        self._owner = np.repeat(np.arange(len(leaves)), self._counts)

    def rows(self, tree: Any) -> list[Array]:
        """The rows, and then the large arrays."""
        leaves = list(zip(jax.tree.leaves(tree), self._counts, strict=True))
        flat = [jnp.pad(leaf.reshape(-1), (0, count * WIDTH - leaf.size)) for leaf, count in leaves if count]
        return [jnp.concatenate(flat).reshape(-1, WIDTH), *(leaf for leaf, count in leaves if not count)]

    def tree(self, rows: list[Array]) -> Any:
        """The inverse of `rows`."""
        (small, *large), begin, leaves = rows, 0, []
        for shape, count in zip(self._shapes, self._counts, strict=True):
            if count:
                flat = small[begin : begin + count].reshape(-1)
                leaves.append(flat[: math.prod(shape)].reshape(shape))
                begin += count
            else:
                leaves.append(large.pop(0))
        return jax.tree.unflatten(self._tree, leaves)

    def sums(self, rows: list[Array]) -> list[Array]:
        """Of the elements of each array: those of the small ones in one array, then each large one's."""
        small, *large = rows
        is_of = jnp.arange(len(self._shapes))[:, None] == self._owner
        return [jnp.where(is_of, small.sum(-1), 0.0).sum(-1), *(one.sum() for one in large)]

    def spread(self, values: list[Array]) -> list[Array]:
        """A value of each array, as `sums` has them, in the shapes of `rows`."""
        small, *large = values
        return [small[self._owner][:, None], *large]
