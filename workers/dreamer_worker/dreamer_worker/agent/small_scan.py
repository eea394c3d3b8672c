"""The observed scan of a small model as two kernels, one forward and one backward, each for all steps.

A program for each block of deter keeps that block's weights and state in registers. What all blocks share (the inputs,
the posterior, the draw) every program computes for itself: that takes less time than waiting for another to do it. So
the programs meet only twice per step, at a counter in memory:

    forward     inputs, hidden ─▶ squares ┃ gates, deter ─▶ products of deter ┃ posterior, draw
    backward    draw, posterior, deter, gates ─▶ shares of the norm ┃ hidden ─▶ gradients of the inputs ┃ inputs

All programs must run at the same time, or they wait for ever: there are as many as blocks, eight, so that on a device
with 132 multiprocessors sixteen such kernels of different processes fit side by side. Interpreted, one program does the
work of all.

Names and roundings are those of `observation.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from dreamer_worker.agent.kernels import (
    EPS,
    Ref,
    active,
    call,
    columns_of,
    dot,
    down,
    drawn,
    f32,
    fits,
    gated,
    like,
    mean_of,
    normed,
    shaped,
    share,
)

Array = jax.Array
WARPS = 8
__all__ = ["fits", "scan_backward", "scan_forward"]


def wait(count: Ref, turn: Any, programs: int) -> None:
    """Until every program has come here `turn` times."""
    if programs == 1:
        return
    triton.debug_barrier()  # the whole program has written before its arrival is counted
    seen = triton.atomic_add(count, (0,), 1) + 1
    jax.lax.while_loop(lambda seen: seen < turn * programs, lambda seen: triton.atomic_add(count, (0,), 0), seen)
    triton.debug_barrier()


def _forward(*refs: Ref, programs: int, classes: int, unimix: float) -> None:
    (_, first, first_ahead, first_sin, keep, bias, scale, hidden_w, given, hidden_scale, gates_w, gates_bias, both_w,
     look, look_scale, logits_w, logits_bias, gumbel, stoch_w, count, deter, stoch, squares, parts) = refs  # fmt: skip
    steps, blocks, _, width = given.shape
    hidden, me = first_sin.shape[1], pl.program_id(0)
    mine = [me] if programs > 1 else list(range(blocks))
    rows = [pl.ds(0, width), pl.ds(width, hidden), pl.ds(width + hidden, hidden)]
    w_hidden = [[hidden_w[g, k, :] for k in rows] for g in mine]
    w_gates = [columns_of(gates_w, (g,), 3, width) for g in mine]
    w_both = [columns_of(both_w, (g,), 2, hidden) for g in mine]
    w_logits, w_stoch = logits_w[...], stoch_w[...]
    # Read once: at every meeting the cache is emptied of what other programs may have changed.
    around = [(bias[i], scale[i]) for i in range(2)]
    beside = [(hidden_scale[g], columns_of(gates_bias, (g,), 3, width)) for g in mine]
    scale_of_look, bias_of_logits = look_scale[...], logits_bias[...]

    def step(t: Any, carried: Any) -> Any:
        before, ahead, sin = carried
        kept, known, dice, given_h = keep[t], look[t], gumbel[t], [given[t, g] for g in mine]
        inputs = [normed(x * kept + add, by) for x, (add, by) in zip((ahead, sin), around, strict=True)]
        before, h = [x * kept for x in before], []
        for x, w, more, g in zip(before, w_hidden, given_h, mine, strict=True):
            acc = dot(x, w[0]) + dot(inputs[0], w[1]) + dot(inputs[1], w[2])
            h.append(acc.astype(x.dtype) + more)
            squares[g, :] = jnp.sum(jnp.square(h[-1].astype(f32)), -1)
        wait(count, 2 * t + 1, programs)
        factor = jax.lax.rsqrt(jnp.sum(squares[...], 0) / (blocks * width) + EPS)[:, None]
        after = []
        for x, hid, w, outer, (by, add), g in zip(before, h, w_gates, w_both, beside, mine, strict=True):
            new = gated(active(hid, factor, by), w, add, x)
            deter[t, g] = new
            parts[g, 0], parts[g, 1] = dot(new, outer[0]), dot(new, outer[1])
            after.append(new)
        wait(count, 2 * t + 2, programs)
        seen, ahead = (jnp.sum(parts[:, i], 0).astype(known.dtype) for i in range(2))
        found = drawn(normed(seen + known, scale_of_look), w_logits, bias_of_logits, dice, classes, unimix)
        pl.when(me == 0)(lambda: stoch.__setitem__(t, found))
        return after, ahead, dot(found, w_stoch).astype(ahead.dtype)

    jax.lax.fori_loop(0, steps, step, ([first[g] for g in mine], first_ahead[...], first_sin[...]))


def scan_forward(rssm: Any, w: Any, start: Any, given: Any, interpret: bool) -> tuple[Array, Array]:
    """deter and stoch of all steps. As `observation._scan`."""
    (blocks, batch, _), steps, size = start.deter.shape, len(given.keep), rssm.stoch * rssm.classes
    programs, dtype, count = 1 if interpret else blocks, start.deter.dtype, jnp.zeros(1, jnp.int32)
    kernel = partial(_forward, programs=programs, classes=rssm.classes, unimix=rssm.unimix)
    args = (
        count, start.deter, start.ahead, start.stoch @ w.stoch_in, given.keep, w.bias, w.scale, w.hidden, given.hidden,
        w.hidden_scale, w.gates, w.gates_bias, w.both, given.look, w.look_scale[None], w.logits, w.logits_bias[None],
        given.gumbel.reshape(steps, batch, size), w.stoch_in,
    )  # fmt: skip
    outs = (
        like(count), like(given.hidden), shaped((steps, batch, size), dtype), shaped((blocks, batch), f32),
        shaped((blocks, 2, batch, rssm.hidden), f32),
    )  # fmt: skip
    found = call(kernel, (programs,), outs, *args, interpret=interpret, into={0: 0}, warps=WARPS)
    return found[1], found[2]


def _backward(*refs: Ref, programs: int, classes: int, unimix: float) -> None:
    (_, given_deter, given_stoch, probs, look_gain, look_unit, gates, h_gain, h_unit, slope, u_gain, u_unit, keep,
     logits_w, both_w, gates_w, hidden_w, stoch_w, count, deter, stoch, ahead, shares, parts) = refs  # fmt: skip
    steps, blocks, batch, width = given_deter.shape
    hidden, size, me = look_gain.shape[2], given_stoch.shape[2], pl.program_id(0)
    mine = [me] if programs > 1 else list(range(blocks))
    rows = [pl.ds(0, width), pl.ds(width, hidden), pl.ds(width + hidden, hidden)]
    w_hidden = [[hidden_w[g, k, :].T for k in rows] for g in mine]
    w_gates = [[w.T for w in columns_of(gates_w, (g,), 3, width)] for g in mine]
    w_both = [[w.T for w in columns_of(both_w, (g,), 2, hidden)] for g in mine]
    w_logits, w_stoch = logits_w[...].T, stoch_w[...].T

    def step(back: Any, later: Any) -> Any:
        t = steps - 1 - back
        deters, chosen, next_ahead = later
        chance = probs[t].astype(f32).reshape(batch, size // classes, classes)
        chosen = chosen + given_stoch[t]
        deters = [x + given_deter[t, g] for x, g in zip(deters, mine, strict=True)]

        @pl.when(me == 0)
        def _after() -> None:
            stoch[t + 1], ahead[t + 1] = chosen, next_ahead

        spread = chosen.astype(f32).reshape(chance.shape) * chance
        logits = (1 - unimix) * (spread - chance * jnp.sum(spread, -1, keepdims=True))
        dy = dot(logits.reshape(batch, size).astype(chosen.dtype), w_logits).astype(chosen.dtype)
        bend = look_gain[t], look_unit[t]
        looked = down(*bend, dy, mean_of(*bend, dy))
        slopes = [(h_gain[t, g], h_unit[t, g], slope[t, g]) for g in mine]
        kept, totals, h = keep[t], [], []
        for x, outer, inner, (gain, unit, _), g in zip(deters, w_both, w_gates, slopes, mine, strict=True):
            deter[t + 1, g] = x
            total = x + (dot(looked, outer[0]) + dot(next_ahead, outer[1])).astype(x.dtype)
            acc = [dot(total * gate, w) for gate, w in zip(columns_of(gates, (t, g), 3, width), inner, strict=True)]
            h.append((acc[0] + acc[1] + acc[2]).astype(x.dtype))
            shares[g, :] = jnp.sum(share(gain, unit, h[-1]), -1)
            totals.append(total)
        wait(count, 2 * back + 1, programs)
        mean, before = (jnp.sum(shares[...], 0) / (blocks * width))[:, None], []
        bends = [(u_gain[t, i], u_unit[t, i]) for i in range(2)]
        for total, hid, w, (gain, unit, through), g in zip(totals, h, w_hidden, slopes, mine, strict=True):
            dx = down(gain, unit, hid, mean)
            before.append((total * through + dot(dx, w[0]).astype(dx.dtype)) * kept)
            parts[g, 0], parts[g, 1] = dot(dx, w[1]).astype(dx.dtype), dot(dx, w[2]).astype(dx.dtype)
        wait(count, 2 * back + 2, programs)
        u = []
        for i, bend in enumerate(bends):
            dy = jnp.sum(parts[:, i].astype(f32), 0).astype(chosen.dtype)
            u.append(down(*bend, dy, mean_of(*bend, dy)) * kept)
        return before, dot(u[1], w_stoch).astype(chosen.dtype), u[0]

    zeros = partial(jnp.zeros, dtype=given_deter.dtype)
    last = [zeros((batch, width)) for _ in mine], zeros((batch, size)), zeros((batch, hidden))
    deters, chosen, first_ahead = jax.lax.fori_loop(0, steps, step, last)
    for x, g in zip(deters, mine, strict=True):
        deter[0, g] = x

    @pl.when(me == 0)
    def _before() -> None:
        stoch[0], ahead[0] = chosen, first_ahead


def scan_backward(
    rssm: Any, w: Any, slopes: Any, keep: Array, given: tuple[Array, Array], interpret: bool
) -> tuple[Any, Any]:
    """As `observation._state_gradients`: of deter, stoch and ahead before the first step, and after every step."""
    (steps, blocks, batch, width), hidden = given[0].shape, rssm.hidden
    size, dtype, count = rssm.stoch * rssm.classes, given[0].dtype, jnp.zeros(1, jnp.int32)
    programs = 1 if interpret else blocks
    kernel = partial(_backward, programs=programs, classes=rssm.classes, unimix=rssm.unimix)
    args = (
        count, *given, slopes.probs.reshape(steps, batch, size), *slopes.look, slopes.gates, *slopes.h, slopes.deter,
        *slopes.u, keep, w.logits, w.both, w.gates, w.hidden, w.stoch_in,
    )  # fmt: skip
    outs = (
        like(count), shaped((steps + 1, blocks, batch, width), dtype), shaped((steps + 1, batch, size), dtype),
        shaped((steps + 1, batch, hidden), dtype), shaped((blocks, batch), f32),
        shaped((blocks, 2, batch, hidden), dtype),
    )  # fmt: skip
    _, *found = call(kernel, (programs,), outs, *args, interpret=interpret, into={0: 0}, warps=WARPS)
    return tuple(x[0] for x in found[:3]), tuple(x[1:] for x in found[:3])
