"""Imagination of a small model as one kernel: a program takes 16 sequences through all steps.

The sequences do not depend on each other, so no program waits for another. The weights are more than a program can
keep: it reads them again at every step, from the cache that all share.

`fits` says for which agents: one continuous action, as in DM Control. Names and roundings are those of
`imagination.imagine_fast`; no gradient passes.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from dreamer_worker.agent import kernels
from dreamer_worker.agent.kernels import (
    EPS,
    SMALLEST,
    active,
    call,
    columns_of,
    dot,
    drawn,
    f32,
    gated,
    normed,
    shaped,
    tanh,
)

Array = jax.Array
ROWS = 16
WARPS = 8
STAGES = 2  # weights on their way while others are used


class Weights(NamedTuple):
    """In the order in which a step uses them; the policy's further layers and the prior's are stacked."""

    stoch: Array  # (stoch, 2 hidden): to the policy, to the hidden layer
    stoch_bias: Array  # (1, hidden)
    layers: Array  # (layer, hidden, hidden): the policy's second and further, then the prior's
    layers_bias: Array  # (layer, 1, hidden)
    layers_scale: Array  # (layer, 1, hidden)
    scale: Array  # (5, 1, hidden): the policy's and the prior's first layer, and the inputs from deter, stoch, action
    out: Array  # (2, hidden, action): mean and deviation
    out_bias: Array  # (2, 1, action)
    action: Array  # (action, hidden)
    action_bias: Array  # (1, hidden)
    hidden: Array  # (block, width + 3 hidden, width)
    hidden_bias: Array  # (block, 1, width)
    hidden_scale: Array  # (block, 1, width)
    gates: Array  # (block, width, 3 width)
    gates_bias: Array  # (block, 1, 3 width)
    deter: Array  # (block, width, 3 hidden): to the prior, to the policy, ahead
    deter_bias: Array  # (3, 1, hidden)
    logits: Array  # (hidden, stoch)
    logits_bias: Array  # (1, stoch)


def fits(rssm: Any, head: Any, count: int) -> bool:
    """Whether the kernel can be used for this agent and this many sequences."""
    (space, *others) = head.space.values()
    is_plain = not others and not space.discrete and len(space.shape) == 1 and head.nets.units == rssm.hidden
    return is_plain and space.shape[0] <= SMALLEST and count % ROWS == 0 and kernels.fits(rssm, ROWS)


def weights_of(rssm: Any, head: Any, p: Any, dtype: Any) -> Weights:
    [(key, space)] = head.space.items()
    dyn, pol = p["dyn"], p["pol"]
    policy, prior = list(pol["body"].values()), list(dyn["prior"].values())
    more, blocks, extra = policy[1:] + prior[1:], rssm.blocks, SMALLEST - space.shape[0]
    inputs = [dyn[name] for name in ("deter_in", "stoch_in", "action_in")]
    out = [pol[f"{name}/{key}"] for name in ("mean", "std")]
    of_deter = [prior[0]["kernel"], policy[0]["kernel"][: rssm.deter], dyn["deter_in"]["kernel"]]
    rows = partial(jnp.stack, axis=0)
    found = Weights(
        stoch=jnp.concatenate([policy[0]["kernel"][rssm.deter :], dyn["stoch_in"]["kernel"]], -1),
        stoch_bias=dyn["stoch_in"]["bias"][None],
        layers=rows([layer["kernel"] for layer in more]),
        layers_bias=rows([layer["bias"] for layer in more])[:, None],
        layers_scale=rows([layer["scale"] for layer in more])[:, None],
        scale=rows([layer["scale"] for layer in (policy[0], prior[0], *inputs)])[:, None],
        out=jnp.pad(rows([one["kernel"] for one in out]), ((0, 0), (0, 0), (0, extra))),
        out_bias=jnp.pad(rows([one["bias"] for one in out]), ((0, 0), (0, extra)))[:, None],
        action=jnp.pad(dyn["action_in"]["kernel"], ((0, extra), (0, 0))),
        action_bias=dyn["action_in"]["bias"][None],
        hidden=dyn["hidden"]["kernel"],
        hidden_bias=dyn["hidden"]["bias"].reshape(blocks, 1, -1),
        hidden_scale=dyn["hidden"]["scale"].reshape(blocks, 1, -1),
        gates=dyn["gates"]["kernel"],
        gates_bias=dyn["gates"]["bias"].reshape(blocks, 1, -1),
        deter=jnp.concatenate(of_deter, -1).reshape(blocks, rssm.deter // blocks, -1),
        deter_bias=rows([layer["bias"] for layer in (prior[0], policy[0], dyn["deter_in"])])[:, None],
        logits=dyn["prior_out"]["kernel"],
        logits_bias=dyn["prior_out"]["bias"][None],
    )
    return Weights(*(x if "scale" in name else x.astype(dtype) for name, x in found._asdict().items()))


def _dream(first, first_stoch, dice, noise, *refs, rssm, nets, is_real):  # type: ignore[no-untyped-def]
    w, (feature, acted, h) = Weights(*refs[:-3]), refs[-3:]
    blocks, width, hidden, dtype = rssm.blocks, w.gates.shape[1], w.logits.shape[0], w.logits.dtype
    of_stoch = pl.ds(rssm.deter, w.logits.shape[1])
    mine, steps, policy_layers = pl.ds(pl.program_id(0) * ROWS, ROWS), dice.shape[0], nets.policy_layers - 1
    rows = [pl.ds(0, width)] + [pl.ds(width + i * hidden, hidden) for i in range(3)]

    def meet() -> None:
        """What one thread of the program wrote, another reads."""
        if is_real:
            triton.debug_barrier()

    def layer(i: int, x: Array) -> Array:
        return normed(dot(x, w.layers[i]).astype(dtype) + w.layers_bias[i], w.layers_scale[i])

    def products(g: Any, x: Array, sums: tuple[Array, ...]) -> tuple[Array, ...]:
        """The first products of deter: of the prior, of the policy, ahead. Added up over the blocks."""
        weights = columns_of(w.deter, (g,), 3, hidden)
        return tuple(acc + dot(x, one) for acc, one in zip(sums, weights, strict=True))

    def biased(sums: tuple[Array, ...]) -> list[Array]:
        return [acc.astype(dtype) + w.deter_bias[i] for i, acc in enumerate(sums)]

    zeros = tuple(jnp.zeros((ROWS, hidden), f32) for _ in range(3))

    def begin(g: Any, sums: tuple[Array, ...]) -> tuple[Array, ...]:
        columns = pl.ds(g * width, width)
        x = first[mine, columns]
        feature[0, mine, columns] = x
        return products(g, x, sums)

    def step(t: Any, carried: Any) -> Any:
        drew, policy, ahead = carried
        to_policy, to_hidden = (dot(drew, w.stoch[:, pl.ds(i * hidden, hidden)]).astype(dtype) for i in range(2))
        x = normed(policy + to_policy, w.scale[0])
        for i in range(policy_layers):
            x = layer(i, x)
        mean, std = ((dot(x, w.out[i]).astype(dtype) + w.out_bias[i]).astype(f32) for i in range(2))
        std = (nets.max_std - nets.min_std) * jax.nn.sigmoid(std + 2.0) + nets.min_std
        action = tanh(mean) + std * noise[t, mine, :]
        acted[t, mine, :] = action
        action = action.astype(dtype).astype(f32)
        action = (action / jnp.maximum(1.0, jnp.abs(action))).astype(dtype)
        inputs = [
            normed(ahead, w.scale[2]),
            normed(to_hidden + w.stoch_bias[...], w.scale[3]),
            normed(dot(action, w.action[...]).astype(dtype) + w.action_bias[...], w.scale[4]),
        ]

        def mix(g: Any, squares: Array) -> Array:
            columns = pl.ds(g * width, width)
            acc = dot(feature[t, mine, columns], w.hidden[g, rows[0], :])
            for one, k in zip(inputs, rows[1:], strict=True):
                acc += dot(one, w.hidden[g, k, :])
            found = acc.astype(dtype) + w.hidden_bias[g]
            h[mine, columns] = found
            return squares + jnp.sum(jnp.square(found.astype(f32)), -1, keepdims=True)

        def advance(g: Any, sums: tuple[Array, ...]) -> tuple[Array, ...]:
            columns = pl.ds(g * width, width)
            x = active(h[mine, columns], factor, w.hidden_scale[g])
            gates, bias = columns_of(w.gates, (g,), 3, width), columns_of(w.gates_bias, (g,), 3, width)
            after = gated(x, gates, bias, feature[t, mine, columns])
            feature[t + 1, mine, columns] = after
            return products(g, after, sums)

        meet()
        squares = jax.lax.fori_loop(0, blocks, mix, jnp.zeros((ROWS, 1), f32))
        factor = jax.lax.rsqrt(squares / (blocks * width) + EPS)
        meet()
        expected, policy, ahead = biased(jax.lax.fori_loop(0, blocks, advance, zeros))
        x = normed(expected, w.scale[1])
        for i in range(policy_layers, w.layers.shape[0]):
            x = layer(i, x)
        drew = drawn(x, w.logits[...], w.logits_bias[...], dice[t, mine, :], rssm.classes, rssm.unimix)
        feature[t + 1, mine, of_stoch] = drew
        return drew, policy, ahead

    sums = jax.lax.fori_loop(0, blocks, begin, zeros)
    drew = first_stoch[mine, :]
    feature[0, mine, of_stoch] = drew
    jax.lax.fori_loop(0, steps, step, (drew, *biased(sums)[1:]))


def dream(rssm: Any, head: Any, p: Any, start: Any, noise: Any, interpret: bool) -> tuple[Array, dict[str, Array]]:
    """The features of `start` and of all steps, and the actions. As `imagination.imagine_fast`."""
    [(key, space)] = head.space.items()
    (steps, count), dtype = noise.gumbel.shape[:2], start.deter.dtype
    size, actions = rssm.stoch * rssm.classes, space.shape[0]
    dice = jnp.pad(noise.actions[key], ((0, 0), (0, 0), (0, SMALLEST - actions)))
    args = start.deter, start.stoch, noise.gumbel.reshape(steps, count, size), dice, *weights_of(rssm, head, p, dtype)
    outs = (
        shaped((steps + 1, count, rssm.deter + size), dtype), shaped((steps, count, SMALLEST), f32),
        shaped((count, rssm.deter), dtype),
    )  # fmt: skip
    kernel = partial(_dream, rssm=rssm, nets=head.nets, is_real=not interpret)
    found = call(kernel, (count // ROWS,), outs, *args, interpret=interpret, warps=WARPS, stages=STAGES)
    return found[0], {key: found[1][..., :actions]}
