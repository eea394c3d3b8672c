"""The observed scan's steps as a few hand-written kernels (Pallas, Triton): five forward, five backward.

A step of `observation.py` is some thirty tiny kernels, each taking about as long as starting it. Here what surrounds a
product (norm, activation, gates, draw) is computed with it, by every program for itself: reading a row of a few
kilobytes again costs less than another kernel. The sequences stay whole: a kernel is told its step by `at`, reads and
writes that row of them in place, and the last kernel of a step counts on. So nothing is cut out or put back in between.

    forward     hidden ─▶ gates ─▶ both ─▶ draw ─▶ stoch_in        backward    look ─▶ deter ─▶ h ─▶ mixed ─▶ stoch

Names, shapes and roundings are those of `observation.py`: g block, b batch, w width of a block. `fits` says for which
sizes: powers of two, and at least 16 rows and columns, as the tensor cores need them.
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
Ref = Any
f32 = jnp.float32
EPS = 1e-4  # of a norm
SMALLEST = 16  # rows or columns of a product
Kernel = Callable[..., None]


def fits(rssm: Any, batch: int) -> bool:
    """Whether the kernels can be used for this size of model and batch."""
    width = rssm.deter // rssm.blocks
    sizes = (batch, width, rssm.hidden, rssm.blocks, rssm.classes, rssm.stoch)
    return all(size & (size - 1) == 0 for size in sizes) and min(batch, width, rssm.hidden) >= SMALLEST


def call(kernel: Kernel, grid: tuple[int, ...], outs: Any, *args: Array, interpret: bool, into: Any = None) -> Any:
    """Run `kernel`; `into`: which argument an output overwrites, by their positions."""
    run = pl.pallas_call(
        kernel,
        out_shape=outs,
        grid=grid,
        interpret=interpret,
        input_output_aliases=into or {},
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=3),
        name=getattr(kernel, "func", kernel).__name__.strip("_"),
    )
    return run(*args)


def tile_of(columns: int, groups: int = 1, programs: int = 128) -> int:
    """Columns per program: enough programs to fill the device, none with fewer than a product's smallest."""
    most = min(64, groups * columns // programs)
    return max(SMALLEST, 1 << max(0, most.bit_length() - 1))


def chunks(size: int) -> tuple[int, int]:
    """How many pieces of a product's inner dimension, and how wide they are."""
    chunk = min(128, size)
    return size // chunk, chunk


def like(x: Array, *shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape or x.shape, x.dtype)


def product(acc: Array, size: int, left: Callable[[Any], Array], right: Callable[[Any], Array], at: int = 0) -> Array:
    """`acc` + left @ right, piece by piece of the inner dimension. Both are given the piece to load; `right` has its
    own begin of it."""
    count, chunk = chunks(size)

    def add(i: Any, acc: Array) -> Array:
        return acc + jnp.dot(
            left(pl.ds(i * chunk, chunk)), right(pl.ds(at + i * chunk, chunk)), preferred_element_type=f32
        )

    return jax.lax.fori_loop(0, count, add, acc)


def product_back(
    acc: Array, size: int, left: Callable[[Any], Array], right: Callable[[Any], Array], at: int = 0
) -> Array:
    """The same with the transpose of `right`, whose second axis is the inner one."""
    count, chunk = chunks(size)

    def add(i: Any, acc: Array) -> Array:
        weights = right(pl.ds(at + i * chunk, chunk))
        return acc + jnp.dot(left(pl.ds(i * chunk, chunk)), weights.T, preferred_element_type=f32)

    return jax.lax.fori_loop(0, count, add, acc)


def factor_of(x: Array) -> Array:
    """What brings each row to a root mean square of one."""
    return jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(f32)), -1, keepdims=True) + EPS)


def active(x: Array, factor: Array, scale: Array) -> Array:
    y = (x.astype(f32) * factor * scale).astype(x.dtype).astype(f32)
    return (y * jax.nn.sigmoid(y)).astype(x.dtype)


def down(gain: Array, unit: Array, dy: Array, mean: Array) -> Array:
    """As `observation._down`, given the mean over the row."""
    return (gain.astype(f32) * dy.astype(f32) - unit.astype(f32) * mean).astype(dy.dtype)


def share(gain: Array, unit: Array, dy: Array) -> Array:
    """What the mean in `down` is of."""
    return gain.astype(f32) * dy.astype(f32) * unit.astype(f32)


# Forward


def _hidden(at, deter, both, sin, keep, bias, scale, weights, given, out, squares, *, tile):  # type: ignore[no-untyped-def]
    """The hidden layer before its norm, and the sums of its squares."""
    batch, width, hidden = deter.shape[2], deter.shape[3], sin.shape[-1]
    t, g, n = at[0], pl.program_id(0), pl.program_id(1)
    columns, kept = pl.ds(n * tile, tile), keep[t]
    acc = jnp.zeros((batch, tile), f32)
    acc = product(acc, width, lambda k: deter[t, g, :, k] * kept, lambda k: weights[g, k, columns])

    def ahead(k: Any) -> Array:
        return both[:, pl.ds(hidden + k.start, k.size)]

    for j, source in enumerate((ahead, lambda k: sin[:, k])):

        def u(k: Any, j: int = j, source: Any = source) -> Array:
            x: Array = source(k) * kept + bias[j, :, k]
            return x

        factor = factor_of(u(pl.ds(0, hidden)))

        def left(k: Any, j: int = j, u: Any = u, factor: Array = factor) -> Array:
            return active(u(k), factor, scale[j, :, k])

        acc = product(acc, hidden, left, lambda k: weights[g, k, columns], width + j * hidden)
    h = acc.astype(deter.dtype) + given[t, g, :, columns]
    out[g, :, columns] = h
    squares[g * pl.num_programs(1) + n, :] = jnp.sum(jnp.square(h.astype(f32)), -1)


def _gates(at, h, squares, deter, keep, scale, weights, bias, out, *, tile):  # type: ignore[no-untyped-def]
    """The next deter."""
    blocks, batch, width = h.shape
    t, g, n = at[0], pl.program_id(0), pl.program_id(1)
    columns = pl.ds(n * tile, tile)
    factor = jax.lax.rsqrt(jnp.sum(squares[...], 0) / (blocks * width) + EPS)[:, None]
    count, chunk = chunks(width)
    thirds = [pl.ds(j * width + n * tile, tile) for j in range(3)]

    def add(i: Any, acc: Any) -> Any:
        k = pl.ds(i * chunk, chunk)
        x = active(h[g, :, k], factor, scale[g, :, k])
        products = [jnp.dot(x, weights[g, k, third], preferred_element_type=f32) for third in thirds]
        return tuple(one + more for one, more in zip(acc, products, strict=True))

    acc = jax.lax.fori_loop(0, count, add, (jnp.zeros((batch, tile), f32),) * 3)
    reset, proposal, update = (
        (one.astype(h.dtype) + bias[g, :, third]).astype(f32) for one, third in zip(acc, thirds, strict=True)
    )
    before = (deter[t, g, :, columns] * keep[t]).astype(f32)
    update = jax.nn.sigmoid(update - 1)
    new = update * jnp.tanh(jax.nn.sigmoid(reset) * proposal) + (1 - update) * before
    out[t + 1, g, :, columns] = new.astype(h.dtype)


def _both(at, deter, weights, out, *, tile):  # type: ignore[no-untyped-def]
    """The products of deter that the posterior and the next step start with."""
    _, blocks, batch, width = deter.shape
    t, columns = at[0], pl.ds(pl.program_id(0) * tile, tile)

    def add(g: Any, acc: Array) -> Array:
        return product(acc, width, lambda k: deter[t + 1, g, :, k], lambda k: weights[g, k, columns])

    acc = jax.lax.fori_loop(0, blocks, add, jnp.zeros((batch, tile), f32))
    out[:, columns] = acc.astype(deter.dtype)


def _draw(at, both, given, scale, weights, bias, gumbel, kept, out, *, tile, classes, unimix):  # type: ignore[no-untyped-def]
    """The draw from the posterior, one-hot."""
    _, batch, hidden = given.shape
    t, columns = at[0], pl.ds(pl.program_id(0) * tile, tile)
    factor = factor_of(both[:, pl.ds(0, hidden)] + given[t])
    acc = product(
        jnp.zeros((batch, tile), f32),
        hidden,
        lambda k: active(both[:, k] + given[t, :, k], factor, scale[:, k]),
        lambda k: weights[k, columns],
    )
    logits = (acc.astype(both.dtype) + bias[:, columns]).astype(f32).reshape(batch, tile // classes, classes)
    powers = jnp.exp(logits - jnp.max(logits, -1, keepdims=True))
    probs = (1 - unimix) * powers / jnp.sum(powers, -1, keepdims=True) + unimix / classes
    score = jnp.log(probs) + gumbel[t, :, columns].reshape(logits.shape)
    drawn = (score == jnp.max(score, -1, keepdims=True)).astype(f32).reshape(batch, tile)
    out[t, :, columns] = drawn.astype(both.dtype)


def _stoch_in(at, stoch, weights, out, after, *, tile):  # type: ignore[no-untyped-def]
    """stoch's product for the next step."""
    t, columns = at[0], pl.ds(pl.program_id(0) * tile, tile)
    acc = jnp.zeros((stoch.shape[1], tile), f32)
    acc = product(acc, stoch.shape[2], lambda k: stoch[t, :, k], lambda k: weights[k, columns])
    out[:, columns] = acc.astype(stoch.dtype)
    after[0] = t + 1  # every program writes the same


def scan_forward(rssm: Any, w: Any, start: Any, given: Any, unroll: int, interpret: bool) -> tuple[Array, Array]:
    """deter and stoch of all steps. As `observation._scan`."""
    (blocks, batch, width), hidden, steps = start.deter.shape, rssm.hidden, len(given.keep)
    size, run = rssm.stoch * rssm.classes, partial(call, interpret=interpret)
    tile, both_tile, stoch_tile = tile_of(width, blocks), tile_of(2 * hidden), max(tile_of(size), rssm.classes)
    grid, in_tile = (blocks, width // tile), tile_of(hidden)
    gumbel = given.gumbel.reshape(steps, batch, size)
    squares = jax.ShapeDtypeStruct((blocks * width // tile, batch), f32)
    hidden_kernel, gates_kernel = partial(_hidden, tile=tile), partial(_gates, tile=tile)
    draw_kernel = partial(_draw, tile=stoch_tile, classes=rssm.classes, unimix=rssm.unimix)

    def step(_: int, carried: tuple[Array, ...]) -> tuple[Array, ...]:
        at, deter, stoch, both, sin = carried
        args = (at, deter, both, sin, given.keep, w.bias, w.scale, w.hidden, given.hidden)
        h, sums = run(hidden_kernel, grid, (like(start.deter), squares), *args)
        args = (at, h, sums, deter, given.keep, w.hidden_scale, w.gates, w.gates_bias)
        deter = run(gates_kernel, grid, like(deter), *args, into={3: 0})
        both = run(partial(_both, tile=both_tile), (2 * hidden // both_tile,), like(both), at, deter, w.both)
        args = (at, both, given.look, w.look_scale[None], w.logits, w.logits_bias[None], gumbel, stoch)
        stoch = run(draw_kernel, (size // stoch_tile,), like(stoch), *args, into={7: 0})
        args = (at, stoch, w.stoch_in)
        sin, at = run(partial(_stoch_in, tile=in_tile), (hidden // in_tile,), (like(sin), like(at)), *args)
        return at, deter, stoch, both, sin

    dtype = start.deter.dtype
    deter = jnp.zeros((steps + 1, *start.deter.shape), dtype).at[0].set(start.deter)
    both = jnp.concatenate([start.ahead, start.ahead], -1)
    first = (jnp.zeros(1, jnp.int32), deter, jnp.zeros((steps, batch, size), dtype), both, start.stoch @ w.stoch_in)
    _, deter, stoch, _, _ = jax.lax.fori_loop(0, steps, step, first, unroll=min(unroll, steps))
    return deter[1:], stoch


# Backward


def _look(at, stoch, probs, weights, out, *, tile, classes, unimix):  # type: ignore[no-untyped-def]
    """Of the posterior's hidden layer, before its norm and activation."""
    t, columns, batch = at[0], pl.ds(pl.program_id(0) * tile, tile), stoch.shape[1]

    def logits(k: Any) -> Array:
        chance = probs[t, :, k].astype(f32).reshape(batch, k.size // classes, classes)
        spread = stoch[t + 1, :, k].astype(f32).reshape(chance.shape) * chance
        found = (1 - unimix) * (spread - chance * jnp.sum(spread, -1, keepdims=True))
        return found.reshape(batch, k.size).astype(stoch.dtype)

    acc = jnp.zeros((batch, tile), f32)
    acc = product_back(acc, stoch.shape[2], logits, lambda k: weights[columns, k])
    out[:, columns] = acc.astype(stoch.dtype)


def _deter(at, look, gain, unit, ahead, deter, weights, out, *, tile):  # type: ignore[no-untyped-def]
    """Of deter, with what it gives to the posterior and to the next step."""
    batch, hidden = look.shape
    t, g, columns = at[0], pl.program_id(0), pl.ds(pl.program_id(1) * tile, tile)
    mean = jnp.mean(share(gain[t], unit[t], look[...]), -1, keepdims=True)
    acc = jnp.zeros((batch, tile), f32)
    acc = product_back(
        acc,
        hidden,
        lambda k: down(gain[t, :, k], unit[t, :, k], look[:, k], mean),
        lambda k: weights[g, columns, k],
    )
    acc = product_back(acc, hidden, lambda k: ahead[t + 1, :, k], lambda k: weights[g, columns, k], hidden)
    out[g, :, columns] = deter[t + 1, g, :, columns] + acc.astype(look.dtype)


def _h(at, deter, gates, gain, unit, weights, out, shares, *, tile):  # type: ignore[no-untyped-def]
    """Of the hidden layer, before its norm and activation; and the sums that its norm needs."""
    _, batch, width = deter.shape
    t, g, n = at[0], pl.program_id(0), pl.program_id(1)
    columns, acc = pl.ds(n * tile, tile), jnp.zeros((batch, tile), f32)
    for j in range(3):

        def left(k: Any, j: int = j) -> Array:
            slope: Array = gates[t, g, :, pl.ds(j * width + k.start, k.size)]
            return deter[g, :, k] * slope

        acc = product_back(acc, width, left, lambda k: weights[g, columns, k], j * width)
    found = acc.astype(deter.dtype)
    out[g, :, columns] = found
    part = share(gain[t, g, :, columns], unit[t, g, :, columns], found)
    shares[g * pl.num_programs(1) + n, :] = jnp.sum(part, -1)


def _mixed(at, h, shares, gain, unit, deter, slope, keep, weights, before, inputs, out, *, tile):  # type: ignore[no-untyped-def]
    """Of the deter before, added to what it is given; and of the inputs, for each block."""
    blocks, batch, width = h.shape
    t, g, n = at[0], pl.program_id(0), pl.program_id(1)
    columns = pl.ds(n * tile, tile)
    mean = (jnp.sum(shares[...], 0) / (blocks * width))[:, None]
    acc = product_back(
        jnp.zeros((batch, tile), f32),
        width,
        lambda k: down(gain[t, g, :, k], unit[t, g, :, k], h[g, :, k], mean),
        lambda k: weights[g, columns, k],
    )
    mixed = acc.astype(h.dtype)

    @pl.when(n * tile < width)
    def _() -> None:
        found = (deter[g, :, columns] * slope[t, g, :, columns] + mixed) * keep[t]
        out[t, g, :, columns] = before[t, g, :, columns] + found

    @pl.when(n * tile >= width)
    def _() -> None:
        inputs[g, :, pl.ds(n * tile - width, tile)] = mixed


def _stoch(at, inputs, gain, unit, keep, weights, before, ahead, out, ahead_out, after, *, tile):  # type: ignore[no-untyped-def]
    """Of the stoch before, added to what it is given; and of ahead."""
    blocks, batch, hidden = inputs.shape[0], inputs.shape[1], inputs.shape[2] // 2
    t, n = at[0], pl.program_id(0)
    columns = pl.ds(n * tile, tile)

    def given(j: int, k: Any) -> Array:
        def add(g: Any, acc: Array) -> Array:
            return acc + inputs[g, :, pl.ds(j * hidden + k.start, k.size)].astype(f32)

        found: Array = jax.lax.fori_loop(0, blocks, add, jnp.zeros((batch, k.size), f32))
        return found.astype(inputs.dtype)

    whole = pl.ds(0, hidden)
    mean = [jnp.mean(share(gain[t, j], unit[t, j], given(j, whole)), -1, keepdims=True) for j in range(2)]

    def u(j: int, k: Any) -> Array:
        return down(gain[t, j, :, k], unit[t, j, :, k], given(j, k), mean[j]) * keep[t]

    acc = jnp.zeros((batch, tile), f32)
    acc = product_back(acc, hidden, lambda k: u(1, k), lambda k: weights[columns, k])
    out[t, :, columns] = before[t, :, columns] + acc.astype(inputs.dtype)

    @pl.when(n * tile < hidden)
    def _() -> None:
        ahead_out[t, :, columns] = u(0, columns)

    after[0] = t - 1  # every program writes the same


def scan_backward(
    rssm: Any, w: Any, slopes: Any, keep: Array, given: tuple[Array, Array], unroll: int, interpret: bool
) -> tuple[Any, Any]:
    """As `observation._state_gradients`: of deter, stoch and ahead before the first step, and after every step."""
    (steps, blocks, batch, width), hidden = given[0].shape, rssm.hidden
    size, run = rssm.stoch * rssm.classes, partial(call, interpret=interpret)
    tile, look_tile, stoch_tile = tile_of(width, blocks), tile_of(hidden), tile_of(size)
    grid, mixed_tile = (blocks, width // tile), min(width, tile_of(width + 2 * hidden, blocks))
    probs = slopes.probs.reshape(steps, batch, size)
    shares = jax.ShapeDtypeStruct((blocks * width // tile, batch), f32)
    row = jax.ShapeDtypeStruct((blocks, batch, width), given[0].dtype)
    inputs = jax.ShapeDtypeStruct((blocks, batch, 2 * hidden), given[0].dtype)
    look_kernel = partial(_look, tile=look_tile, classes=rssm.classes, unimix=rssm.unimix)

    def step(_: int, carried: tuple[Array, ...]) -> tuple[Array, ...]:
        at, deter, stoch, ahead = carried
        out = jax.ShapeDtypeStruct((batch, hidden), stoch.dtype)
        look = run(look_kernel, (hidden // look_tile,), out, at, stoch, probs, w.logits)
        args = (at, look, *slopes.look, ahead, deter, w.both)
        now = run(partial(_deter, tile=tile), grid, row, *args)
        args = (at, now, slopes.gates, *slopes.h, w.gates)
        h, sums = run(partial(_h, tile=tile), grid, (row, shares), *args)
        args = (at, h, sums, *slopes.h, now, slopes.deter, keep, w.hidden, deter)
        mixed_grid = (blocks, (width + 2 * hidden) // mixed_tile)
        mixed, deter = run(partial(_mixed, tile=mixed_tile), mixed_grid, (inputs, like(deter)), *args, into={9: 1})
        args = (at, mixed, *slopes.u, keep, w.stoch_in, stoch, ahead)
        outs = (like(stoch), like(ahead), like(at))
        stoch, ahead, at = run(
            partial(_stoch, tile=stoch_tile), (size // stoch_tile,), outs, *args, into={6: 0, 7: 1}
        )
        return at, deter, stoch, ahead

    def padded(x: Array) -> Array:
        return jnp.concatenate([jnp.zeros_like(x[:1]), x])

    ahead = jnp.zeros((steps + 1, batch, hidden), given[0].dtype)
    last = (jnp.full(1, steps - 1, jnp.int32), *map(padded, given), ahead)
    _, *found = jax.lax.fori_loop(0, steps, step, last, unroll=min(unroll, steps))
    return tuple(x[0] for x in found), tuple(x[1:] for x in found)
