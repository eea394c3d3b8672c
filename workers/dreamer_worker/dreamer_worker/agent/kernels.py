"""The observed scan's steps as a few hand-written kernels (Pallas, Triton): five forward, five backward.

A step of `observation.py` is some thirty tiny kernels, each taking about as long as starting it. Here what surrounds a
product (norm, activation, gates, draw) is computed with it, by every program for itself: reading a row of a few
kilobytes again costs less than another kernel.

    forward     hidden ─▶ gates ─▶ both ─▶ stoch ─▶ stoch_in        backward    look ─▶ deter ─▶ h ─▶ mixed ─▶ stoch

Names, shapes and roundings are those of `observation.py`: g block, b batch, w width of a block. All sizes are powers of
two, and at least 16 rows make up a batch, as tensor cores need it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

Array = jax.Array
f32 = jnp.float32
EPS = 1e-4  # of a norm
SMALLEST = 16  # rows or columns of a product

Kernel = Callable[..., None]


def call(kernel: Kernel, grid: tuple[int, ...], outs: Any, *args: Array, interpret: bool, warps: int = 4) -> Any:
    params = triton.CompilerParams(num_warps=warps, num_stages=3)
    name = kernel.func.__name__ if isinstance(kernel, partial) else kernel.__name__
    run = pl.pallas_call(
        kernel, out_shape=outs, grid=grid, interpret=interpret, compiler_params=params, name=name.strip("_")
    )
    return run(*args)


def tile_of(columns: int, groups: int = 1, programs: int = 128) -> int:
    """Columns per program: enough programs to fill the device, none with fewer than a product's smallest."""
    return max(SMALLEST, min(64, groups * columns // programs))


def chunks(size: int) -> tuple[int, int]:
    """How many pieces of a product's inner dimension, and how wide they are."""
    chunk = min(128, size)
    return size // chunk, chunk


def like(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def product(acc: Array, size: int, left: Callable[[Any], Array], right: Callable[[Any], Array]) -> Array:
    """`acc` + left @ right, piece by piece of the inner dimension; both are given the piece to load."""
    count, chunk = chunks(size)

    def add(i: Any, acc: Array) -> Array:
        piece = pl.ds(i * chunk, chunk)
        return acc + jnp.dot(left(piece), right(piece), preferred_element_type=f32)

    return jax.lax.fori_loop(0, count, add, acc)


def factor_of(x: Array) -> Array:
    """What brings each row to a root mean square of one."""
    return jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(f32)), -1, keepdims=True) + EPS)


def active(x: Array, factor: Array, scale: Array) -> Array:
    y = (x.astype(f32) * factor * scale).astype(x.dtype)
    return (y.astype(f32) * jax.nn.sigmoid(y.astype(f32))).astype(x.dtype)


def _hidden(deter, ahead, sin, keep, bias, scale, weights, given, out, squares, *, tile):  # type: ignore[no-untyped-def]
    """The hidden layer before its norm, and the sums of its squares."""
    (_, batch, width), hidden = deter.shape, ahead.shape[-1]
    g, n = pl.program_id(0), pl.program_id(1)
    columns, kept = pl.ds(n * tile, tile), keep[...]
    acc = jnp.zeros((batch, tile), f32)
    acc = product(acc, width, lambda k: deter[g, :, k] * kept, lambda k: weights[g, k, columns])
    for j, source in enumerate((ahead, sin)):
        factor = factor_of(source[...] * kept + bias[j])
        count, chunk = chunks(hidden)
        begin = width + j * hidden

        def add(i, acc, j=j, source=source, factor=factor, begin=begin, chunk=chunk):  # type: ignore[no-untyped-def]
            k = pl.ds(i * chunk, chunk)
            y = active(source[:, k] * kept + bias[j, :, k], factor, scale[j, :, k])
            w = weights[g, pl.ds(begin + i * chunk, chunk), columns]
            return acc + jnp.dot(y, w, preferred_element_type=f32)

        acc = jax.lax.fori_loop(0, count, add, acc)
    h = acc.astype(deter.dtype) + given[g, :, columns]
    out[g, :, columns] = h
    squares[g * pl.num_programs(1) + n, :] = jnp.sum(jnp.square(h.astype(f32)), -1)


def _gates(h, squares, deter, keep, scale, weights, bias, out, *, tile):  # type: ignore[no-untyped-def]
    """The next deter."""
    blocks, batch, width = h.shape
    g, n = pl.program_id(0), pl.program_id(1)
    columns = pl.ds(n * tile, tile)
    mean = jnp.sum(squares[...], 0) / (blocks * width)
    factor = jax.lax.rsqrt(mean + EPS)[:, None]
    count, chunk = chunks(width)
    thirds = [pl.ds(j * width + n * tile, tile) for j in range(3)]

    def add(i, acc):  # type: ignore[no-untyped-def]
        k = pl.ds(i * chunk, chunk)
        x = active(h[g, :, k], factor, scale[g, :, k])
        products = [jnp.dot(x, weights[g, k, third], preferred_element_type=f32) for third in thirds]
        return tuple(one + more for one, more in zip(acc, products, strict=True))

    acc = jax.lax.fori_loop(0, count, add, (jnp.zeros((batch, tile), f32),) * 3)
    reset, proposal, update = (
        (one.astype(h.dtype) + bias[g, :, third]).astype(f32) for one, third in zip(acc, thirds, strict=True)
    )
    before = (deter[g, :, columns] * keep[...]).astype(f32)
    update = jax.nn.sigmoid(update - 1)
    new = update * jnp.tanh(jax.nn.sigmoid(reset) * proposal) + (1 - update) * before
    out[g, :, columns] = new.astype(h.dtype)


def _both(deter, weights, out, *, tile):  # type: ignore[no-untyped-def]
    """The products of deter that the posterior and the next step start with."""
    blocks, batch, width = deter.shape
    columns = pl.ds(pl.program_id(0) * tile, tile)

    def add(g, acc):  # type: ignore[no-untyped-def]
        return product(acc, width, lambda k: deter[g, :, k], lambda k: weights[g, k, columns])

    acc = jax.lax.fori_loop(0, blocks, add, jnp.zeros((batch, tile), f32))
    out[:, columns] = acc.astype(deter.dtype)


def _stoch(both, given, scale, weights, bias, gumbel, out, *, tile, classes, unimix):  # type: ignore[no-untyped-def]
    """The draw from the posterior, one-hot."""
    batch, hidden = given.shape
    columns = pl.ds(pl.program_id(0) * tile, tile)
    factor = factor_of(both[:, pl.ds(0, hidden)] + given[...])
    acc = product(
        jnp.zeros((batch, tile), f32),
        hidden,
        lambda k: active(both[:, k] + given[:, k], factor, scale[:, k]),
        lambda k: weights[k, columns],
    )
    logits = (acc.astype(both.dtype) + bias[:, columns]).astype(f32).reshape(batch, tile // classes, classes)
    powers = jnp.exp(logits - jnp.max(logits, -1, keepdims=True))
    probs = (1 - unimix) * powers / jnp.sum(powers, -1, keepdims=True) + unimix / classes
    score = jnp.log(probs) + gumbel[:, columns].reshape(logits.shape)
    drawn = (score == jnp.max(score, -1, keepdims=True)).astype(f32).reshape(batch, tile)
    out[:, columns] = drawn.astype(both.dtype)


def _times(x, weights, out, *, tile):  # type: ignore[no-untyped-def]
    """A plain product."""
    columns = pl.ds(pl.program_id(0) * tile, tile)
    acc = jnp.zeros((x.shape[0], tile), f32)
    acc = product(acc, x.shape[1], lambda k: x[:, k], lambda k: weights[k, columns])
    out[:, columns] = acc.astype(x.dtype)


def times(x: Array, weights: Array, interpret: bool) -> Array:
    tile = tile_of(weights.shape[1])
    out = like((x.shape[0], weights.shape[1]), x.dtype)
    found: Array = call(partial(_times, tile=tile), (weights.shape[1] // tile,), out, x, weights, interpret=interpret)
    return found


def forward(w: Any, deter: Array, ahead: Array, sin: Array, x: Any, unimix: float, interpret: bool) -> Any:
    """One step: the next deter, stoch, ahead, and stoch's product for the step after. As `observation._cell`."""
    blocks, batch, width = deter.shape
    hidden, (variables, classes), dtype = ahead.shape[-1], x.gumbel.shape[-2:], deter.dtype
    run = partial(call, interpret=interpret)
    tile = tile_of(width, blocks)
    grid = (blocks, width // tile)
    outs = like(deter.shape, dtype), like((blocks * width // tile, batch), f32)
    args = (deter, ahead, sin, x.keep, w.bias, w.scale, w.hidden, x.hidden)
    h, squares = run(partial(_hidden, tile=tile), grid, outs, *args)
    args = (h, squares, deter, x.keep, w.hidden_scale, w.gates, w.gates_bias)
    deter = run(partial(_gates, tile=tile), grid, outs[0], *args)
    tile = tile_of(2 * hidden)
    both = run(partial(_both, tile=tile), (2 * hidden // tile,), like((batch, 2 * hidden), dtype), deter, w.both)
    size = variables * classes
    tile = max(tile_of(size), classes)
    kernel = partial(_stoch, tile=tile, classes=classes, unimix=unimix)
    scale, bias = w.look_scale[None], w.logits_bias[None]
    args = (both, x.look, scale, w.logits, bias, x.gumbel.reshape(batch, size))
    stoch = run(kernel, (size // tile,), like((batch, size), dtype), *args)
    return deter, stoch, both[:, hidden:], times(stoch, w.stoch_in, interpret)


def scan_forward(rssm: Any, w: Any, start: Any, given: Any, unroll: int, interpret: bool) -> tuple[Array, Array]:
    """deter and stoch of all steps. As `observation._scan`."""

    def step(carried: tuple[Array, Array, Array], x: Any) -> Any:
        deter, stoch, ahead, sin = forward(w, *carried, x, rssm.unimix, interpret)
        return (deter, ahead, sin), (deter, stoch)

    first = start.deter, start.ahead, start.stoch @ w.stoch_in
    found: tuple[Array, Array] = jax.lax.scan(step, first, given, unroll=unroll)[1]
    return found
