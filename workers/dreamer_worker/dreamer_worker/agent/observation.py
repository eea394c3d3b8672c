"""`rssm.observe`, arranged for speed: the same numbers up to rounding, from fewer and larger kernels.

A step of the scan has sixteen rows, so its products take less time than starting them. Hence:

1. What does not wait for the recurrence is computed for all steps at once before it: the action's way into the hidden
   layer and the tokens' way into the posterior.
2. The scan carries deter cut into its blocks, (block, batch, width), so that block-diagonal products need no
   transpose, and `ahead`, the product of deter that the next step starts with, made along with this step's posterior.
3. Backwards, only the gradients of the carried state are sequential, and they are linear: their coefficients are
   computed for all steps at once, then comes one short scan. Given those, the gradients of all weights are those of one
   large step with time as part of the batch, which ordinary differentiation finds.

    u       inputs from ahead and stoch        h   hidden layer       q   gates
    look    the posterior's hidden layer       a norm's and SiLU's slope: dx = gain * dy - unit * mean(gain * dy * unit)
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dreamer_worker.agent.config import Rssm
from dreamer_worker.agent.layers import Array, Params, activate, cast, linear
from dreamer_worker.agent.rssm import Seen, State, bounded, distribution, gated, posterior


class Weights(NamedTuple):
    """What one step of the scan multiplies with, cut and joined as it needs them."""

    stoch_in: Array  # (stoch, hidden)
    bias: Array  # (2, 1, hidden): of the inputs from ahead and stoch
    scale: Array  # (2, 1, hidden)
    hidden: Array  # (block, width + 2 hidden, width)
    hidden_scale: Array  # (block, 1, width)
    gates: Array  # (block, width, 3 width)
    gates_bias: Array  # (block, 1, 3 width)
    both: Array  # (block, width, 2 hidden): to the posterior, and ahead
    look_scale: Array  # (hidden)
    logits: Array  # (hidden, stoch)
    logits_bias: Array  # (stoch)


class Carried(NamedTuple):
    deter: Array  # (block, batch, width)
    stoch: Array  # (batch, stoch)
    ahead: Array  # (batch, hidden)


class Given(NamedTuple):
    """Per step, from before the scan."""

    hidden: Array  # (block, batch, width)
    look: Array  # (batch, hidden)
    keep: Array  # (batch, 1): zero where an episode starts
    gumbel: Array  # (batch, variables, classes)


class Middle(NamedTuple):
    """Intermediate results of a step."""

    u: Array
    h: Array
    q: Array
    look: Array
    logits: Array


class Slopes(NamedTuple):
    """The coefficients of the backward scan."""

    u: tuple[Array, Array]
    h: tuple[Array, Array]
    look: tuple[Array, Array]
    gates: Array  # (block, batch, 3 width)
    deter: Array  # (block, batch, width)
    probs: Array  # (batch, variables, classes)


def observe(
    rssm: Rssm,
    p: Params,
    state: State,
    actions: Array,
    tokens: Array,
    first: Array,
    gumbel: Array,
    unroll: int = 16,
    kernels: str = "xla",
) -> Seen:
    """As `rssm.observe`. `kernels`: who makes those of the scan, see `small_scan.py`."""
    if rssm.posterior_layers != 1:
        raise ValueError("The fast path supports only one posterior layer. Set compute.path=plain to use more.")
    if kernels != "xla" and not _hand_written().fits(rssm, len(state.deter)):
        kernels = "xla"
    dtype, look = tokens.dtype, p["posterior"]["layer0"]
    keep = (1 - first.astype(dtype))[..., None]
    action = activate(p["action_in"], linear(p["action_in"], bounded(actions * keep)))
    hidden = action @ _dense(rssm, p)[2 * rssm.hidden :].astype(dtype) + p["hidden"]["bias"].astype(dtype)
    given = Given(
        _cut(rssm, hidden),
        tokens @ look["kernel"][rssm.deter :].astype(dtype) + look["bias"].astype(dtype),
        keep,
        gumbel,
    )
    ahead = state.deter @ p["deter_in"]["kernel"].astype(dtype)
    start = Carried(_cut(rssm, state.deter), state.stoch, ahead)
    deter, stoch = _scan(rssm, unroll, kernels, _weights(rssm, cast(p, dtype)), start, given)
    deter = _joined(deter)
    # The losses' logits once more, for all steps at once: cheaper than carrying them out of the scan.
    return Seen(State(deter, stoch), posterior(p, deter, tokens))


def _hand_written() -> Any:
    """Imported when used: not every JAX has what they are written in."""
    from dreamer_worker.agent import small_scan

    return small_scan


def _weights(rssm: Rssm, p: Params) -> Weights:
    look, blocks, width = p["posterior"]["layer0"], rssm.blocks, rssm.deter // rssm.blocks
    both = jnp.concatenate([look["kernel"][: rssm.deter], p["deter_in"]["kernel"]], -1)
    inputs = (p["deter_in"], p["stoch_in"])
    return Weights(
        stoch_in=p["stoch_in"]["kernel"],
        bias=jnp.stack([one["bias"] for one in inputs])[:, None],
        scale=jnp.stack([one["scale"] for one in inputs])[:, None],
        hidden=p["hidden"]["kernel"][:, : width + 2 * rssm.hidden],
        hidden_scale=p["hidden"]["scale"].reshape(blocks, 1, width),
        gates=p["gates"]["kernel"],
        gates_bias=p["gates"]["bias"].reshape(blocks, 1, -1),
        both=both.reshape(blocks, width, -1),
        look_scale=look["scale"],
        logits=p["posterior_out"]["kernel"],
        logits_bias=p["posterior_out"]["bias"],
    )


def _cut(rssm: Rssm, x: Array) -> Array:
    """(..., batch, deter) to (..., block, batch, width)."""
    return jnp.swapaxes(x.reshape((*x.shape[:-1], rssm.blocks, -1)), -3, -2)


def _joined(x: Array) -> Array:
    x = jnp.swapaxes(x, -3, -2)
    return x.reshape((*x.shape[:-2], -1))


@partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _scan(rssm: Rssm, unroll: int, kernels: str, weights: Weights, start: Carried, given: Given) -> tuple[Array, Array]:
    """deter and stoch of all steps."""
    if kernels != "xla":
        found: tuple[Array, Array] = _hand_written().scan_forward(rssm, weights, start, given, kernels == "interpreted")
        return found

    def step(carried: Carried, x: Given) -> tuple[Carried, tuple[Array, Array]]:
        carried, _ = _cell(rssm, weights, carried, x)
        return carried, (carried.deter, carried.stoch)

    return jax.lax.scan(step, start, given, unroll=unroll)[1]


def _forward(rssm: Rssm, unroll: int, kernels: str, weights: Weights, start: Carried, given: Given) -> Any:
    deter, stoch = _scan(rssm, unroll, kernels, weights, start, given)
    return (deter, stoch), (weights, start, given, deter, stoch)


def _backward(rssm: Rssm, unroll: int, kernels: str, kept: Any, gradients: tuple[Array, Array]) -> Any:
    weights, start, given, deter, stoch = kept
    ahead = _ahead(rssm, weights, deter)
    states = Carried(deter, stoch, ahead)
    before = jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest[:-1]]), start, states)

    def all_steps(weights: Weights, given: Given) -> tuple[Carried, Middle]:
        return _cell(rssm, weights, before, given, stoch)

    _, back, middle = jax.vjp(all_steps, weights, given, has_aux=True)
    slopes = _slopes(rssm, weights, middle, _kept(before.deter, given.keep))
    if kernels == "xla":
        first, totals = _state_gradients(rssm, unroll, weights, slopes, given.keep, gradients)
    else:
        found = _hand_written().scan_backward(rssm, weights, slopes, given.keep, gradients, kernels == "interpreted")
        first, totals = (Carried(*one) for one in found)
    found, inputs = back(totals)
    return found, first, inputs


_scan.defvjp(_forward, _backward)


def _kept(deter: Array, keep: Array) -> Array:
    return deter * keep[..., None, :, :]


def _ahead(rssm: Rssm, w: Weights, deter: Array) -> Array:
    return jnp.einsum("...gbw,gwn->...bn", deter, w.both[..., rssm.hidden :])


def _cell(rssm: Rssm, w: Weights, carried: Carried, x: Given, drawn: Array | None = None) -> tuple[Carried, Middle]:
    """One step, or with time in front all steps at once. `drawn` is a draw already made; gradients pass through it."""
    deter = _kept(carried.deter, x.keep)
    u = jnp.stack([carried.ahead, carried.stoch @ w.stoch_in], -3) * x.keep[..., None, :, :] + w.bias
    inputs = _active(w.scale, u, (-1,))
    inputs = jnp.concatenate([inputs[..., 0, :, :], inputs[..., 1, :, :]], -1)[..., None, :, :]
    inputs = jnp.broadcast_to(inputs, (*deter.shape[:-1], inputs.shape[-1]))
    h = jnp.einsum("...gbk,gko->...gbo", jnp.concatenate([deter, inputs], -1), w.hidden) + x.hidden
    q = jnp.einsum("...gbw,gwo->...gbo", _active(w.hidden_scale, h, (-3, -1)), w.gates) + w.gates_bias
    deter = _gated(q, deter)
    # One product per block, added up in the next kernel: more of them run side by side.
    parts = jnp.einsum("...gbw,gwn->...gbn", deter, w.both).astype(jnp.float32)
    look, ahead = jnp.split(parts.sum(-3).astype(deter.dtype), 2, -1)
    look = look + x.look
    logits = _active(w.look_scale, look, (-1,)) @ w.logits + w.logits_bias
    stoch = draw(rssm, logits, x.gumbel) if drawn is None else _through(rssm, logits, drawn)
    return Carried(deter, stoch, ahead), Middle(u, h, q, look, logits)


def _gated(q: Array, deter: Array) -> Array:
    reset, proposal, update = jnp.split(q, 3, -1)
    update = jax.nn.sigmoid(update - 1)
    return update * jnp.tanh(jax.nn.sigmoid(reset) * proposal) + (1 - update) * deter


def draw(rssm: Rssm, logits: Array, gumbel: Array) -> Array:
    """As `rssm.draw` going forward; a maximum is one kernel less than finding where it is."""
    score = distribution(rssm, logits).logits + gumbel
    return (score == score.max(-1, keepdims=True)).astype(logits.dtype).reshape(logits.shape)


def _through(rssm: Rssm, logits: Array, drawn: Array) -> Array:
    chosen = distribution(rssm, logits)
    onehot = drawn.reshape(chosen.logits.shape).astype(jnp.float32)
    return chosen.straight_through(onehot).astype(logits.dtype).reshape(logits.shape)


def _unit(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """`x` at root mean square one, and what it was multiplied with; both float32."""
    wide = x.astype(jnp.float32)
    factor = jax.lax.rsqrt(jnp.mean(jnp.square(wide), axes, keepdims=True) + 1e-4)
    return wide * factor, factor


def _active(scale: Array, x: Array, axes: tuple[int, ...]) -> Array:
    return jax.nn.silu((_unit(x, axes)[0] * scale).astype(x.dtype))


def _slope(scale: Array, x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Of `_active` at `x`: the gain and the unit of this file's head."""
    unit, factor = _unit(x, axes)
    y = unit * scale
    open_ = jax.nn.sigmoid(y)
    gain = factor * scale * open_ * (1 + y * (1 - open_))
    return gain.astype(x.dtype), unit.astype(x.dtype)


def _down(slope: tuple[Array, Array], dy: Array, axes: tuple[int, ...]) -> Array:
    gain, unit = (x.astype(jnp.float32) for x in slope)
    scaled = gain * dy.astype(jnp.float32)
    return (scaled - unit * jnp.mean(scaled * unit, axes, keepdims=True)).astype(dy.dtype)


def _slopes(rssm: Rssm, w: Weights, middle: Middle, deter: Array) -> Slopes:
    reset, proposal, update = (x.astype(jnp.float32) for x in jnp.split(middle.q, 3, -1))
    reset, update = jax.nn.sigmoid(reset), jax.nn.sigmoid(update - 1)
    new = jnp.tanh(reset * proposal)
    inner = update * (1 - jnp.square(new))
    gates = jnp.concatenate(
        [inner * proposal * reset * (1 - reset), inner * reset, (new - deter) * update * (1 - update)], -1
    )
    logits = middle.logits.reshape((*middle.logits.shape[:-1], rssm.stoch, rssm.classes))
    return Slopes(
        u=_slope(w.scale, middle.u, (-1,)),
        h=_slope(w.hidden_scale, middle.h, (-3, -1)),
        look=_slope(w.look_scale, middle.look, (-1,)),
        gates=gates.astype(deter.dtype),
        deter=(1 - update).astype(deter.dtype),
        probs=jax.nn.softmax(logits.astype(jnp.float32)).astype(deter.dtype),
    )


def _state_gradients(
    rssm: Rssm, unroll: int, w: Weights, slopes: Slopes, keep: Array, given: tuple[Array, Array]
) -> tuple[Carried, Carried]:
    """The gradient of the state before the first step, and of the state after every step."""
    width, hidden = rssm.deter // rssm.blocks, rssm.hidden

    def step(later: Carried, x: tuple[Slopes, Array, tuple[Array, Array]]) -> tuple[Carried, Carried]:
        slope, keep, (deter, stoch) = x
        total = Carried(later.deter + deter, later.stoch + stoch, later.ahead)
        spread = total.stoch.reshape(slope.probs.shape).astype(jnp.float32) * slope.probs
        logits = (1 - rssm.unimix) * (spread - slope.probs * spread.sum(-1, keepdims=True))
        logits = logits.astype(deter.dtype).reshape(stoch.shape)
        look = _down(slope.look, logits @ w.logits.T, (-1,))
        both = jnp.concatenate([look, total.ahead], -1)
        deter = total.deter + jnp.einsum("bn,gwn->gbw", both, w.both)
        q = jnp.concatenate([deter] * 3, -1) * slope.gates
        h = _down(slope.h, jnp.einsum("gbo,gwo->gbw", q, w.gates), (-3, -1))
        mixed = jnp.einsum("gbo,gko->gbk", h, w.hidden)
        inputs = mixed[..., width:].astype(jnp.float32).sum(0).astype(deter.dtype)
        u = _down(slope.u, jnp.stack([inputs[:, :hidden], inputs[:, hidden:]]), (-1,)) * keep
        before = Carried(_kept(deter * slope.deter + mixed[..., :width], keep), u[1] @ w.stoch_in.T, u[0])
        return before, total

    last = Carried(jnp.zeros_like(given[0][0]), jnp.zeros_like(given[1][0]), jnp.zeros_like(slopes.look[0][0]))
    return jax.lax.scan(step, last, (slopes, keep, given), reverse=True, unroll=unroll)


def _dense(rssm: Rssm, p: Params) -> Array:
    """The hidden layer's kernel for what all blocks share: (3 hidden, deter)."""
    kernel: Array = p["hidden"]["kernel"][:, rssm.deter // rssm.blocks :]
    return kernel.transpose(1, 0, 2).reshape(3 * rssm.hidden, rssm.deter)


class Hidden(NamedTuple):
    """The hidden layer's kernel cut by who multiplies it. Cut before a loop: the compiler does not move it out."""

    deter: Array  # (block, width, width)
    inputs: Array  # (3 hidden, deter)


def hidden_of(rssm: Rssm, p: Params, dtype: Any) -> Hidden:
    kernel = p["hidden"]["kernel"][:, : rssm.deter // rssm.blocks]
    return Hidden(kernel.astype(dtype), _dense(rssm, p).astype(dtype))


def advance(rssm: Rssm, p: Params, state: State, action: Array) -> Array:
    """As `rssm.advance`, for one large batch."""
    products = linear(p["deter_in"], state.deter), linear(p["stoch_in"], state.stoch)
    return advance_after(rssm, p, hidden_of(rssm, p, state.deter.dtype), state.deter, products, action)


def advance_after(
    rssm: Rssm, p: Params, kernel: Hidden, deter: Array, products: tuple[Array, Array], action: Array
) -> Array:
    """The rest of `advance`, given the first products of deter and stoch. No input is copied once per block."""
    dtype = deter.dtype
    inputs = [
        activate(p["deter_in"], products[0]),
        activate(p["stoch_in"], products[1]),
        activate(p["action_in"], linear(p["action_in"], bounded(action))),
    ]
    blocked = deter.reshape((*deter.shape[:-1], rssm.blocks, -1))
    hidden = jnp.einsum("...gi,gio->...go", blocked, kernel.deter).reshape(deter.shape)
    hidden = hidden + jnp.concatenate(inputs, -1) @ kernel.inputs + p["hidden"]["bias"].astype(dtype)
    hidden = activate(p["hidden"], hidden).reshape(blocked.shape)
    gates = jnp.einsum("...gi,gio->...go", hidden, p["gates"]["kernel"].astype(dtype))
    gates = gates.reshape((*gates.shape[:-2], -1)) + p["gates"]["bias"].astype(dtype)
    return gated(rssm, gates, deter)
