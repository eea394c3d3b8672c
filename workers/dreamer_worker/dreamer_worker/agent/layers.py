"""Layers as functions of a dict of arrays: linear, block-diagonal, convolution, norm, and their initialization."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp

Params = dict[str, Any]
Array = jax.Array
_kind: ContextVar[str] = ContextVar("kernels", default="xla")


class Init:
    """Creates initial weights, as consecutive slices of a single array of random draws.

    A single array, because compiling a random generator per tensor takes longer than the rest of an agent's start.
    Without `draws` the weights are zeros: enough to count them.
    """

    def __init__(self, draws: Array | None = None) -> None:
        self.draws, self.used = draws, 0

    @staticmethod
    def draw(key: Array, count: int) -> Array:
        """Normal, cut at two deviations, with variance one after the cut."""
        return 1.1368 * jax.random.truncated_normal(key, -2.0, 2.0, (count,), jnp.float32)

    def weights(self, shape: Sequence[int], fan_in: int, scale: float = 1.0) -> Array:
        start, self.used = self.used, self.used + math.prod(shape)
        if self.draws is None:
            return jnp.zeros(shape)
        return self.draws[start : self.used].reshape(shape) * (math.sqrt(1.0 / fan_in) * scale)

    def linear(self, inputs: int, outputs: int, scale: float = 1.0) -> Params:
        return {"kernel": self.weights((inputs, outputs), inputs, scale), "bias": jnp.zeros(outputs)}

    def block_linear(self, inputs: int, outputs: int, blocks: int) -> Params:
        # The fan-in is the whole width, as in the reference, though each output sees one block of it.
        kernel = self.weights((blocks, inputs // blocks, outputs // blocks), inputs)
        return {"kernel": kernel, "bias": jnp.zeros(outputs)}

    def conv(self, size: int, inputs: int, outputs: int) -> Params:
        kernel = self.weights((size, size, inputs, outputs), size * size * inputs)
        return {"kernel": kernel, "bias": jnp.zeros(outputs)}

    def normed(self, layer: Params) -> Params:
        """`layer` with the norm that follows it."""
        return {**layer, "scale": jnp.ones(layer["bias"].shape)}

    def mlp(self, inputs: int, units: int, layers: int) -> Params:
        widths = [inputs] + [units] * layers
        return {f"layer{i}": self.normed(self.linear(widths[i], units)) for i in range(layers)}


def biased(p: Params, x: Array) -> Array:
    bias: Array = p["bias"]
    return x + bias.astype(x.dtype)


def linear(p: Params, x: Array) -> Array:
    kernel: Array = p["kernel"]
    return biased(p, x @ kernel.astype(x.dtype))


def block_linear(p: Params, x: Array) -> Array:
    """Each block of the last axis through its own kernel."""
    blocks, width, _ = p["kernel"].shape
    x = x.reshape((*x.shape[:-1], blocks, width))
    x = jnp.einsum("...gi,gio->...go", x, p["kernel"].astype(x.dtype))
    return biased(p, x.reshape((*x.shape[:-2], -1)))


def conv(p: Params, x: Array) -> Array:
    """Stride 1, the size kept; channels last."""
    kernel = p["kernel"].astype(x.dtype)
    x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return biased(p, x)


def rms(scale: Array, x: Array) -> Array:
    """Scaled to a root mean square of one over the last axis, in float32 for any dtype of `x`."""
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(jnp.square(wide), -1, keepdims=True) + 1e-4) * scale
    return wide.astype(x.dtype)


def activate(p: Params, x: Array) -> Array:
    """What follows every hidden layer: norm, then SiLU."""
    return jax.nn.silu(rms(p["scale"], x))


@contextmanager
def kernels_by(kind: str) -> Iterator[None]:
    """Inside, what is traced uses hand-written kernels where they fit: `triton`, `interpreted` or `xla` (none)."""
    token = _kind.set(kind)
    try:
        yield
    finally:
        _kind.reset(token)


def mlp(p: Params, x: Array) -> Array:
    if (kind := _kind.get()) != "xla":
        # Imported when used: not every JAX has what they are written in.
        from dreamer_worker.agent import small_layers

        if small_layers.fits(math.prod(x.shape[:-1]), len(p["layer0"]["bias"])):
            product = x @ p["layer0"]["kernel"].astype(x.dtype)
            return small_layers.hidden_layers(p, product, kind == "interpreted")
    return mlp_after(p, linear(p["layer0"], x))


def mlp_after(p: Params, x: Array) -> Array:
    """The rest of an MLP, given its first layer's product and bias."""
    x = activate(p["layer0"], x)
    for i in range(1, len(p)):
        x = activate(p[f"layer{i}"], linear(p[f"layer{i}"], x))
    return x


def count(params: Any) -> int:
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params))


def cast(params: Any, dtype: Any) -> Any:
    """Kernels and biases in the compute dtype; norms keep float32, where they are applied."""

    def one(path: Any, leaf: Array) -> Array:
        return leaf if path[-1].key == "scale" else leaf.astype(dtype)

    return jax.tree_util.tree_map_with_path(one, params)
