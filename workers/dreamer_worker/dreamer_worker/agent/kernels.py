"""What the hand-written kernels of `small_scan.py` and `small_dream.py` are written with (Pallas, Triton).

A small model's update is hundreds of steps that take less time than starting them. So a kernel does all steps of a
loop. `fits` says for which sizes: powers of two; at least 16 rows and columns, as the tensor cores need them; and small
enough that a program keeps the weights of a block of deter in its registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

Array = jax.Array
Ref = Any
f32 = jnp.float32
EPS = 1e-4  # of a norm
SMALLEST = 16  # rows or columns of a product
LARGEST = 64  # width of a block, or hidden units
Kernel = Callable[..., None]


def fits(rssm: Any, batch: int) -> bool:
    """Whether the kernels can be used for this size of model and batch."""
    width, size = rssm.deter // rssm.blocks, rssm.stoch * rssm.classes
    is_power = all(one & (one - 1) == 0 for one in (batch, width, rssm.hidden, rssm.blocks, rssm.classes, rssm.stoch))
    is_small = max(width, rssm.hidden, size // 2) <= LARGEST and batch <= 32
    return is_power and is_small and min(batch, width, rssm.hidden, size) >= SMALLEST


def call(
    kernel: Kernel,
    grid: tuple[int, ...],
    outs: Any,
    *args: Array,
    interpret: bool,
    into: Any = None,
    warps: int = 4,
    stages: int = 1,
) -> Any:
    """Run `kernel`; `into`: which argument an output overwrites, by their positions."""
    run = pl.pallas_call(
        kernel,
        out_shape=outs,
        grid=grid,
        interpret=interpret,
        input_output_aliases=into or {},
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=stages),
        name=getattr(kernel, "func", kernel).__name__.strip("_"),
    )
    return run(*args)


def like(x: Array) -> jax.ShapeDtypeStruct:
    return shaped(x.shape, x.dtype)


def shaped(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]


def dot(x: Array, weights: Array) -> Array:
    return jnp.dot(x, weights, preferred_element_type=f32)


def normed(x: Array, scale: Array) -> Array:
    """Norm and activation of whole rows. As `observation._active`."""
    mean = jnp.mean(jnp.square(x.astype(f32)), -1, keepdims=True)
    return active(x, jax.lax.rsqrt(mean + EPS), scale)


def active(x: Array, factor: Array, scale: Array) -> Array:
    y = (x.astype(f32) * factor * scale).astype(x.dtype).astype(f32)
    return (y * jax.nn.sigmoid(y)).astype(x.dtype)


def down(gain: Array, unit: Array, dy: Array, mean: Array) -> Array:
    """As `observation._down`, given the mean over the row."""
    return (gain.astype(f32) * dy.astype(f32) - unit.astype(f32) * mean).astype(dy.dtype)


def share(gain: Array, unit: Array, dy: Array) -> Array:
    """What the mean in `down` is of."""
    return gain.astype(f32) * dy.astype(f32) * unit.astype(f32)


def mean_of(gain: Array, unit: Array, dy: Array) -> Array:
    return jnp.mean(share(gain, unit, dy), -1, keepdims=True)


def drawn(x: Array, w: Array, bias: Array, dice: Array, classes: int, unimix: float) -> Array:
    """One-hot, of the logits that `x` gives. As `observation.draw`."""
    logits = (dot(x, w).astype(x.dtype) + bias).astype(f32)
    logits = logits.reshape(len(logits), -1, classes)
    powers = jnp.exp(logits - jnp.max(logits, -1, keepdims=True))
    probs = (1 - unimix) * powers / jnp.sum(powers, -1, keepdims=True) + unimix / classes
    score = jnp.log(probs) + dice.reshape(probs.shape)
    chosen = (score == jnp.max(score, -1, keepdims=True)).astype(f32)
    return chosen.reshape(dice.shape).astype(x.dtype)


def tanh(x: Array) -> Array:
    """By sigmoid: Triton has no tanh of its own on every version."""
    return 2 * jax.nn.sigmoid(2 * x) - 1


def gated(x: Array, w: list[Array], bias: list[Array], before: Array) -> Array:
    """A GRU's last step: the next deter. As `observation._gated`."""
    gates = ((dot(x, one).astype(x.dtype) + add).astype(f32) for one, add in zip(w, bias, strict=True))
    reset, proposal, update = gates
    update = jax.nn.sigmoid(update - 1)
    candidate = tanh(jax.nn.sigmoid(reset) * proposal)
    return (update * candidate + (1 - update) * before.astype(f32)).astype(x.dtype)


def columns_of(ref: Ref, at: tuple[Any, ...], count: int, width: int) -> list[Array]:
    """`count` arrays that lie side by side at `at`."""
    return [ref[*at, :, pl.ds(j * width, width)] for j in range(count)]
