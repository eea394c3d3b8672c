"""The hidden layers of a small model's network as one kernel forward and one backward.

By the compiler a hidden layer (product, bias, norm, SiLU) is three kernels forward and eight backward, each of which is
done in the time that it takes to start it. Here a program takes some rows through all layers. Backward it computes
them again, and adds up what its rows contribute to the weights' gradients; the sum over the programs is left to the
compiler.

The first layer's product is not part of it: several networks read the same input, and the compiler joins their
products. Roundings are those of `layers.mlp`, up to those within a layer.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from dreamer_worker.agent.kernels import EPS, LARGEST, SMALLEST, Ref, call, dot, f32, normed, shaped

Array = jax.Array
Params = dict[str, Any]
PROGRAMS = 128  # at most, backward: each has sums of its own
MANY = 8192  # rows, from which on a program takes twice as many at once; more would not fit into its registers
WARPS = 8


def fits(count: int, units: int) -> bool:
    """Whether the kernels can be used for so many rows, and layers of so many units."""
    return units & (units - 1) == 0 and SMALLEST <= units <= LARGEST and count % SMALLEST == 0


def hidden_layers(p: Params, product: Array, interpret: bool) -> Array:
    """As `layers.mlp`, given the product of its first layer without the bias."""
    layers, units = list(p.values()), product.shape[-1]
    kernels = [layer["kernel"].astype(product.dtype) for layer in layers[1:]] or [jnp.zeros((units, units))]
    rows = [layer["bias"].astype(f32) for layer in layers] + [layer["scale"] for layer in layers]
    found = _layers(interpret, product.reshape(-1, units), jnp.stack(rows)[:, None], jnp.stack(kernels))
    return found.reshape(product.shape)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _layers(interpret: bool, product: Array, rows: Array, kernels: Array) -> Array:
    """`rows`: (2 layers, 1, units), first the biases, then the scales. `kernels`: of the second and further layers."""
    size = _size(len(product))
    found: Array = call(_forward, (len(product) // size,), shaped(product.shape, product.dtype), product, rows, kernels,
                        interpret=interpret)  # fmt: skip
    return found


def _kept(interpret: bool, product: Array, rows: Array, kernels: Array) -> Any:
    return _layers(interpret, product, rows, kernels), (product, rows, kernels)


def _gradients(interpret: bool, kept: Any, gradient: Array) -> tuple[Array, Array, Array]:
    product, rows, kernels = kept
    layers, units, inner = len(rows) // 2, product.shape[1], len(rows) // 2 - 1
    blocks = len(product) // _size(len(product))
    programs = next(count for count in range(min(PROGRAMS, blocks), 0, -1) if blocks % count == 0)
    outs = shaped(product.shape, product.dtype), shaped((programs, inner * units + 2 * layers, units), f32)
    kernel = partial(_backward, repeats=blocks // programs)
    before, sums = call(kernel, (programs,), outs, product, gradient, rows, kernels, interpret=interpret, warps=WARPS)
    sums = sums.sum(0)
    # Without further layers the kernels given are not used.
    of_kernels = sums[2 * layers :].reshape(-1, units, units) if inner else jnp.zeros_like(kernels)
    return before, sums[: 2 * layers, None], of_kernels.astype(kernels.dtype)


_layers.defvjp(_kept, _gradients)


def _size(count: int) -> int:
    """Rows that a program takes at once."""
    return 2 * SMALLEST if count >= MANY and count % (2 * SMALLEST) == 0 else SMALLEST


def _forward(product: Ref, rows: Ref, kernels: Ref, out: Ref) -> None:
    layers, size = rows.shape[0] // 2, product.shape[0] // pl.num_programs(0)
    mine = pl.ds(pl.program_id(0) * size, size)
    x = product[mine, :]
    for i in range(layers):
        x = normed(_product(i, x, rows, kernels), rows[layers + i])
    out[mine, :] = x


def _product(layer: int, x: Array, rows: Ref, kernels: Ref) -> Array:
    if layer:
        x = dot(x, kernels[layer - 1]).astype(x.dtype)
    found: Array = x + rows[layer].astype(x.dtype)
    return found


def _backward(product: Ref, gradient: Ref, rows: Ref, kernels: Ref, before: Ref, sums: Ref, *, repeats: int) -> None:
    layers, units, programs = rows.shape[0] // 2, product.shape[1], sums.shape[0]
    size, me = product.shape[0] // (programs * repeats), pl.program_id(0)

    def block(turn: Any, sums: Any) -> Any:
        mine = pl.ds((turn * programs + me) * size, size)
        x, inputs, products = product[mine, :], [], []
        for i in range(layers):
            inputs.append(x)
            products.append(_product(i, x, rows, kernels))
            x = normed(products[-1], rows[layers + i])
        back, found = gradient[mine, :], []
        for i in reversed(range(layers)):
            dx, of_scale = _bent(products[i], rows[layers + i], back)
            rows_of = jnp.sum(dx.astype(f32), 0, keepdims=True), of_scale
            found.append((*rows_of, dot(inputs[i].T, dx)) if i else rows_of)
            back = dot(dx, kernels[i - 1].T).astype(dx.dtype) if i else dx
        before[mine, :] = back
        return jax.tree.map(jnp.add, sums, found[::-1])

    row, square = jnp.zeros((1, units), f32), jnp.zeros((units, units), f32)
    start = [(row, row, square) if i else (row, row) for i in range(layers)]
    for i, (of_bias, of_scale, *of_kernel) in enumerate(jax.lax.fori_loop(0, repeats, block, start)):
        sums[me, pl.ds(i, 1), :], sums[me, pl.ds(layers + i, 1), :] = of_bias, of_scale
        if of_kernel:
            sums[me, pl.ds(2 * layers + (i - 1) * units, units), :] = of_kernel[0]


def _bent(x: Array, scale: Array, back: Array) -> tuple[Array, Array]:
    """The gradients of a norm with its SiLU, of the input and of the scale."""
    wide = x.astype(f32)
    factor = jax.lax.rsqrt(jnp.mean(jnp.square(wide), -1, keepdims=True) + EPS)
    unit = wide * factor
    y = (unit * scale).astype(x.dtype).astype(f32)
    open_ = jax.nn.sigmoid(y)
    dy = back.astype(f32) * open_ * (1 + y * (1 - open_))
    scaled = dy * scale
    dx = factor * (scaled - unit * jnp.mean(scaled * unit, -1, keepdims=True))
    return dx.astype(x.dtype), jnp.sum(dy * unit, 0, keepdims=True)
