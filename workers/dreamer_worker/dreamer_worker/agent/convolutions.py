"""The two convolutions of the agent, each as it is written and as it is computed fast.

A 5 x 5 convolution after nearest-neighbour doubling reads every small pixel several times: the outputs at one phase
(row parity, column parity) see only 3 x 3 small pixels. So all four phases are one 3 x 3 convolution of the small image
with four times the channels, at 25/9 fewer operations, whose kernel is sums of the 5 x 5 one's rows and columns.

A 5 x 5 convolution before 2 x 2 pooling, seen at half resolution, is a 3 x 3 convolution of the 2 x 2 patches with four
times the channels on both sides; pooling is then a maximum over the four phases. It costs 36/25 more operations and
pays where the channels are too few to fill the matrix units, as in the first layer's three.

    outputs at 2i + p need inputs 2i + p + k, k = -2 .. 2
    doubled:  small pixel  i + a = floor((2i + p + k) / 2)
    patches:  patch i + a, place q  with  2a + q = p + k
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from dreamer_worker.agent.layers import Array, Params, biased, conv


def upsampled(p: Params, x: Array) -> Array:
    """Each pixel doubled in both directions, then convolved."""
    return conv(p, jnp.repeat(jnp.repeat(x, 2, -3), 2, -2))


def pooled(p: Params, x: Array) -> Array:
    """Convolved, then the largest of each 2 x 2 patch."""
    return largest(_patches(conv(p, x)))


@jax.custom_vjp
def largest(x: Array) -> Array:
    """The largest of the four, (..., 4, channels). Among equal values, the first gets the gradient."""
    return _largest(x)[0]


def _largest(x: Array) -> tuple[Array, Array]:
    """The value and its index, a byte, which is all that the backward pass needs."""
    a, b, c, d = (x[..., i, :] for i in range(4))
    upper, lower = jnp.maximum(a, b), jnp.maximum(c, d)
    which = jnp.where(lower > upper, jnp.where(d > c, 3, 2), jnp.where(b > a, 1, 0))
    return jnp.maximum(upper, lower), which.astype(jnp.uint8)


def _largest_back(which: Array, gradient: Array) -> tuple[Array]:
    place = jnp.arange(4, dtype=jnp.uint8)[:, None]
    return (jnp.where(which[..., None, :] == place, gradient[..., None, :], 0),)


largest.defvjp(_largest, _largest_back)


def _patches(x: Array) -> Array:
    """(n, h, w, c) to (n, h/2, w/2, 4, c)."""
    n, h, w, c = x.shape
    x = x.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(n, h // 2, w // 2, 4, c)


def _unpatched(x: Array) -> Array:
    """The inverse of `_patches`, of (n, h, w, 4 * c)."""
    n, h, w, c = x.shape
    x = x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(n, 2 * h, 2 * w, c // 4)


def _doubling_map(size: int) -> np.ndarray:
    """[phase, small offset, tap] = 1 where that tap of the full kernel falls on that small pixel."""
    reach = size // 2
    taps = np.arange(-reach, reach + 1)
    offsets = [(phase + taps) // 2 for phase in (0, 1)]
    span = int(max(-offsets[0].min(), offsets[1].max()))
    table = np.arange(-span, span + 1)[:, None]
    return np.stack([table == offset[None] for offset in offsets]).astype(np.float32)


def _patch_map(size: int) -> np.ndarray:
    """[phase, patch offset, place in patch, tap] = 1 where that tap falls on that place of that patch."""
    reach = size // 2
    span = (reach + 1) // 2
    table = np.zeros((2, 2 * span + 1, 2, size), np.float32)
    for phase in (0, 1):
        for tap in range(-reach, reach + 1):
            patch, place = divmod(phase + tap, 2)
            table[phase, patch + span, place, tap + reach] = 1
    return table


def upsampled_by_phase(p: Params, x: Array) -> Array:
    kernel = p["kernel"].astype(jnp.float32)
    table = _doubling_map(kernel.shape[0])
    kernel = jnp.einsum("pak,qbl,klio->abipqo", table, table, kernel, precision="highest")
    kernel = kernel.reshape((*kernel.shape[:3], -1))
    # Summed in float32, rounded once.
    outputs = kernel.shape[-1]
    if short := -outputs % 8:  # matrix units work on eight channels at a time
        kernel = jnp.pad(kernel, ((0, 0), (0, 0), (0, 0), (0, short)))
    x = _same(kernel.astype(x.dtype), x)[..., :outputs]
    return biased(p, _unpatched(x))


def pooled_by_phase(p: Params, x: Array) -> Array:
    kernel = p["kernel"].astype(jnp.float32)
    table = _patch_map(kernel.shape[0])
    kernel = jnp.einsum("park,qbsl,klio->abrsipqo", table, table, kernel, precision="highest")
    n, h, w, c = x.shape
    kernel = kernel.reshape((*kernel.shape[:2], 4 * c, -1)).astype(x.dtype)
    x = _patches(x).reshape(n, h // 2, w // 2, 4 * c)
    if short := -(4 * c) % 8:
        x = jnp.pad(x, ((0, 0), (0, 0), (0, 0), (0, short)))
        kernel = jnp.pad(kernel, ((0, 0), (0, 0), (0, short), (0, 0)))
    x = _same(kernel, x)
    x = largest(x.reshape((*x.shape[:-1], 4, -1)))
    # The same bias everywhere: it may be added after the maximum.
    return biased(p, x)


def _same(kernel: Array, x: Array) -> Array:
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
