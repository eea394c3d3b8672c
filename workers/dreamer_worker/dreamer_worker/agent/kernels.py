"""The observed scan's steps as a few hand-written kernels (Pallas, Triton): five forward, five backward.

A step of `observation.py` is some thirty tiny kernels, each taking about as long as starting it. Here what surrounds a
product (norm, activation, gates, draw) is computed with it, by every program for itself: reading a row of a few
kilobytes again costs less than another kernel. A program loads its weights first and whole: what it waits for comes
meanwhile, and a loop over pieces of them would wait once per piece. The sequences stay whole too: a kernel is told its
step by `at`, reads and writes that row of them in place, and the last kernel of a step counts on. So nothing is cut
out or put back in between.

    forward     hidden ─▶ gates ─▶ both ─▶ draw ─▶ stoch_in        backward    look ─▶ deter ─▶ h ─▶ mixed ─▶ stoch

Names, shapes and roundings are those of `observation.py`: g block, b batch, w width of a block. `fits` says for which
sizes: powers of two; at least 16 rows and columns, as the tensor cores need them; and small enough to be loaded whole.
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
LARGEST = 512  # width of a block, or hidden units: a program's weights must fit into its registers
Kernel = Callable[..., None]


def fits(rssm: Any, batch: int) -> bool:
    """Whether the kernels can be used for this size of model and batch."""
    width = rssm.deter // rssm.blocks
    sizes = (batch, width, rssm.hidden, rssm.blocks, rssm.classes, rssm.stoch)
    is_power = all(size & (size - 1) == 0 for size in sizes)
    return is_power and min(batch, width, rssm.hidden) >= SMALLEST and max(width, rssm.hidden) <= LARGEST


def warps_of(rssm: Any) -> int:
    return 4 if max(rssm.hidden, rssm.deter // rssm.blocks) <= 128 else 8


def call(
    kernel: Kernel, grid: tuple[int, ...], outs: Any, *args: Array, interpret: bool, into: Any = None, warps: int = 4
) -> Any:
    """Run `kernel`; `into`: which argument an output overwrites, by their positions."""
    run = pl.pallas_call(
        kernel,
        out_shape=outs,
        grid=grid,
        interpret=interpret,
        input_output_aliases=into or {},
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1),
        name=getattr(kernel, "func", kernel).__name__.strip("_"),
    )
    return run(*args)


def tile_of(columns: int, groups: int = 1, programs: int = 128) -> int:
    """Columns per program: enough programs to fill the device, none with fewer than a product's smallest."""
    most = min(64, groups * columns // programs)
    return max(SMALLEST, 1 << max(0, most.bit_length() - 1))


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


# Forward


def _hidden(at, deter, both, sin, keep, bias, scale, weights, given, out, squares, *, tile):  # type: ignore[no-untyped-def]
    """The hidden layer before its norm, and the sums of its squares."""
    width, hidden = deter.shape[3], sin.shape[-1]
    g, n = pl.program_id(0), pl.program_id(1)
    columns = pl.ds(n * tile, tile)
    rows = [pl.ds(0, width), pl.ds(width, hidden), pl.ds(width + hidden, hidden)]
    w = [weights[g, k, columns] for k in rows]
    t = at[0]
    kept = keep[t]
    ahead, stoch = both[:, pl.ds(hidden, hidden)] * kept + bias[0], sin[...] * kept + bias[1]
    acc = dot(deter[t, g] * kept, w[0]) + dot(normed(ahead, scale[0]), w[1]) + dot(normed(stoch, scale[1]), w[2])
    h = acc.astype(deter.dtype) + given[t, g, :, columns]
    out[g, :, columns] = h
    squares[g * pl.num_programs(1) + n, :] = jnp.sum(jnp.square(h.astype(f32)), -1)


def _gates(at, h, squares, deter, keep, scale, weights, bias, out, *, tile):  # type: ignore[no-untyped-def]
    """The next deter."""
    blocks, _, width = h.shape
    g, n = pl.program_id(0), pl.program_id(1)
    columns = pl.ds(n * tile, tile)
    thirds = [pl.ds(j * width + n * tile, tile) for j in range(3)]
    w = [weights[g, :, third] for third in thirds]
    t = at[0]
    factor = jax.lax.rsqrt(jnp.sum(squares[...], 0) / (blocks * width) + EPS)[:, None]
    x = active(h[g], factor, scale[g])
    reset, proposal, update = (
        (dot(x, one).astype(h.dtype) + bias[g, :, third]).astype(f32) for one, third in zip(w, thirds, strict=True)
    )
    before = (deter[t, g, :, columns] * keep[t]).astype(f32)
    update = jax.nn.sigmoid(update - 1)
    # tanh by sigmoid: Triton has no tanh of its own on every version.
    candidate = 2 * jax.nn.sigmoid(2 * jax.nn.sigmoid(reset) * proposal) - 1
    out[t + 1, g, :, columns] = (update * candidate + (1 - update) * before).astype(h.dtype)


def _both(at, deter, weights, out, *, tile):  # type: ignore[no-untyped-def]
    """The products of deter that the posterior and the next step start with."""
    _, blocks, batch, _ = deter.shape
    columns, acc = pl.ds(pl.program_id(0) * tile, tile), jnp.zeros((batch, tile), f32)
    t = at[0]
    some = min(4, blocks)
    for begin in range(0, blocks, some):
        w = [weights[g, :, columns] for g in range(begin, begin + some)]
        x = [deter[t + 1, g] for g in range(begin, begin + some)]
        for one, other in zip(x, w, strict=True):
            acc += dot(one, other)
    out[:, columns] = acc.astype(deter.dtype)


def _draw(at, both, given, scale, weights, bias, gumbel, kept, out, *, tile, classes, unimix):  # type: ignore[no-untyped-def]
    """The draw from the posterior, one-hot."""
    _, batch, hidden = given.shape
    columns = pl.ds(pl.program_id(0) * tile, tile)
    w = weights[:, columns]
    t = at[0]
    dice = gumbel[t, :, columns].reshape(batch, tile // classes, classes)
    x = normed(both[:, pl.ds(0, hidden)] + given[t], scale[...])
    logits = (dot(x, w).astype(both.dtype) + bias[:, columns]).astype(f32).reshape(dice.shape)
    powers = jnp.exp(logits - jnp.max(logits, -1, keepdims=True))
    probs = (1 - unimix) * powers / jnp.sum(powers, -1, keepdims=True) + unimix / classes
    score = jnp.log(probs) + dice
    drawn = (score == jnp.max(score, -1, keepdims=True)).astype(f32).reshape(batch, tile)
    out[t, :, columns] = drawn.astype(both.dtype)


def _stoch_in(at, stoch, weights, out, after, *, tile):  # type: ignore[no-untyped-def]
    """stoch's product for the next step."""
    columns = pl.ds(pl.program_id(0) * tile, tile)
    w = weights[:, columns]
    t = at[0]
    out[:, columns] = dot(stoch[t], w).astype(stoch.dtype)
    after[0] = t + 1  # every program writes the same


def scan_forward(rssm: Any, w: Any, start: Any, given: Any, unroll: int, interpret: bool) -> tuple[Array, Array]:
    """deter and stoch of all steps. As `observation._scan`."""
    (blocks, batch, width), hidden, steps = start.deter.shape, rssm.hidden, len(given.keep)
    size, run = rssm.stoch * rssm.classes, partial(call, interpret=interpret, warps=warps_of(rssm))
    tile, both_tile, stoch_tile = tile_of(width, blocks), tile_of(2 * hidden), max(tile_of(size), rssm.classes)
    grid, in_tile = (blocks, width // tile), tile_of(hidden)
    gumbel = given.gumbel.reshape(steps, batch, size)
    squares = shaped((blocks * width // tile, batch), f32)
    hidden_kernel, gates_kernel = partial(_hidden, tile=tile), partial(_gates, tile=tile)
    draw_kernel = partial(_draw, tile=stoch_tile, classes=rssm.classes, unimix=rssm.unimix)

    def step(_: int, carried: tuple[Array, ...]) -> tuple[Array, ...]:
        at, deter, stoch, both, sin = carried
        args: tuple[Any, ...] = (at, deter, both, sin, given.keep, w.bias, w.scale, w.hidden, given.hidden)
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
    _, batch, size = stoch.shape
    columns = pl.ds(pl.program_id(0) * tile, tile)
    w = weights[columns, :]
    t = at[0]
    chance = probs[t].astype(f32).reshape(batch, size // classes, classes)
    spread = stoch[t + 1].astype(f32).reshape(chance.shape) * chance
    logits = (1 - unimix) * (spread - chance * jnp.sum(spread, -1, keepdims=True))
    out[:, columns] = dot(logits.reshape(batch, size).astype(stoch.dtype), w.T).astype(stoch.dtype)


def _deter(at, look, gain, unit, ahead, deter, weights, out, *, tile):  # type: ignore[no-untyped-def]
    """Of deter, with what it gives to the posterior and to the next step."""
    hidden = look.shape[-1]
    g, columns = pl.program_id(0), pl.ds(pl.program_id(1) * tile, tile)
    w = [weights[g, columns, pl.ds(0, hidden)], weights[g, columns, pl.ds(hidden, hidden)]]
    t = at[0]
    dy, slope = look[...], (gain[t], unit[t])
    acc = dot(ahead[t + 1], w[1].T) + dot(down(*slope, dy, mean_of(*slope, dy)), w[0].T)
    out[g, :, columns] = deter[t + 1, g, :, columns] + acc.astype(look.dtype)


def _hidden_back(at, deter, gates, gain, unit, weights, out, shares, *, tile):  # type: ignore[no-untyped-def]
    """Of the hidden layer, before its norm and activation; and the sums that its norm needs."""
    _, batch, width = deter.shape
    g, n = pl.program_id(0), pl.program_id(1)
    columns, thirds = pl.ds(n * tile, tile), [pl.ds(j * width, width) for j in range(3)]
    w = [weights[g, columns, third] for third in thirds]
    t = at[0]
    x, acc = deter[g], jnp.zeros((batch, tile), f32)
    for one, third in zip(w, thirds, strict=True):
        acc += dot(x * gates[t, g, :, third], one.T)
    found = acc.astype(deter.dtype)
    out[g, :, columns] = found
    part = share(gain[t, g, :, columns], unit[t, g, :, columns], found)
    shares[g * pl.num_programs(1) + n, :] = jnp.sum(part, -1)


def _mixed(at, h, shares, gain, unit, deter, slope, keep, weights, before, inputs, out, *, tile):  # type: ignore[no-untyped-def]
    """Of the deter before, added to what it is given; and of the inputs, for each block."""
    blocks, _, width = h.shape
    g, n = pl.program_id(0), pl.program_id(1)
    columns = pl.ds(n * tile, tile)
    w = weights[g, columns, :]
    t = at[0]
    mean = (jnp.sum(shares[...], 0) / (blocks * width))[:, None]
    mixed = dot(down(gain[t, g], unit[t, g], h[g], mean), w.T).astype(h.dtype)

    @pl.when(n * tile < width)
    def _before() -> None:
        found = (deter[g, :, columns] * slope[t, g, :, columns] + mixed) * keep[t]
        out[t, g, :, columns] = before[t, g, :, columns] + found

    @pl.when(n * tile >= width)
    def _inputs() -> None:
        inputs[g, :, pl.ds(n * tile - width, tile)] = mixed


def _stoch(at, inputs, gain, unit, keep, weights, before, ahead, out, ahead_out, after, *, tile):  # type: ignore[no-untyped-def]
    """Of the stoch before, added to what it is given; and of ahead."""
    hidden, n = inputs.shape[2] // 2, pl.program_id(0)
    columns = pl.ds(n * tile, tile)
    w = weights[columns, :]
    t = at[0]

    def given(begin: Any, size: int) -> Array:
        found: Array = jnp.sum(inputs[:, :, pl.ds(begin, size)].astype(f32), 0)
        return found.astype(inputs.dtype)

    dy, slope = given(hidden, hidden), (gain[t, 1], unit[t, 1])
    u = down(*slope, dy, mean_of(*slope, dy)) * keep[t]
    out[t, :, columns] = before[t, :, columns] + dot(u, w.T).astype(inputs.dtype)

    @pl.when(n * tile < hidden)
    def _() -> None:
        mean = mean_of(gain[t, 0], unit[t, 0], given(0, hidden))
        part = down(gain[t, 0, :, columns], unit[t, 0, :, columns], given(n * tile, tile), mean)
        ahead_out[t, :, columns] = part * keep[t]

    after[0] = t - 1  # every program writes the same


def scan_backward(
    rssm: Any, w: Any, slopes: Any, keep: Array, given: tuple[Array, Array], unroll: int, interpret: bool
) -> tuple[Any, Any]:
    """As `observation._state_gradients`: of deter, stoch and ahead before the first step, and after every step."""
    (steps, blocks, batch, width), hidden = given[0].shape, rssm.hidden
    size, run = rssm.stoch * rssm.classes, partial(call, interpret=interpret, warps=warps_of(rssm))
    tile, look_tile, stoch_tile = tile_of(width, blocks), tile_of(hidden), tile_of(size)
    grid, mixed_tile = (blocks, width // tile), min(width, tile_of(width + 2 * hidden, blocks))
    probs = slopes.probs.reshape(steps, batch, size)
    shares = shaped((blocks * width // tile, batch), f32)
    row = shaped((blocks, batch, width), given[0].dtype)
    inputs = shaped((blocks, batch, 2 * hidden), given[0].dtype)
    look_kernel = partial(_look, tile=look_tile, classes=rssm.classes, unimix=rssm.unimix)

    def step(_: int, carried: tuple[Array, ...]) -> tuple[Array, ...]:
        at, deter, stoch, ahead = carried
        out = shaped((batch, hidden), stoch.dtype)
        look = run(look_kernel, (hidden // look_tile,), out, at, stoch, probs, w.logits)
        args: tuple[Any, ...] = (at, look, *slopes.look, ahead, deter, w.both)
        now = run(partial(_deter, tile=tile), grid, row, *args)
        args = (at, now, slopes.gates, *slopes.h, w.gates)
        h, sums = run(partial(_hidden_back, tile=tile), grid, (row, shares), *args)
        args = (at, h, sums, *slopes.h, now, slopes.deter, keep, w.hidden, deter)
        mixed_grid = (blocks, (width + 2 * hidden) // mixed_tile)
        mixed, deter = run(partial(_mixed, tile=mixed_tile), mixed_grid, (inputs, like(deter)), *args, into={9: 1})
        args = (at, mixed, *slopes.u, keep, w.stoch_in, stoch, ahead)
        outs = (like(stoch), like(ahead), like(at))
        stoch, ahead, at = run(partial(_stoch, tile=stoch_tile), (size // stoch_tile,), outs, *args, into={6: 0, 7: 1})
        return at, deter, stoch, ahead

    def padded(x: Array) -> Array:
        return jnp.concatenate([jnp.zeros_like(x[:1]), x])

    ahead = jnp.zeros((steps + 1, batch, hidden), given[0].dtype)
    last = (jnp.full(1, steps - 1, jnp.int32), *map(padded, given), ahead)
    _, *found = jax.lax.fori_loop(0, steps, step, last, unroll=min(unroll, steps))
    return tuple(x[0] for x in found), tuple(x[1:] for x in found)
