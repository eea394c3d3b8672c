"""Observations to tokens."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from dreamer_worker.agent import convolutions
from dreamer_worker.agent.config import Compute, Nets
from dreamer_worker.agent.devices import shared
from dreamer_worker.agent.distributions import symlog
from dreamer_worker.agent.layers import Array, Init, Params, activate, mlp
from dreamer_worker.agent.spaces import Space, Spaces


def vectors_of(spaces: Spaces) -> Spaces:
    return {key: spaces[key] for key in sorted(spaces) if not spaces[key].is_image}


def images_of(spaces: Spaces) -> Spaces:
    return {key: spaces[key] for key in sorted(spaces) if spaces[key].is_image}


def width_of(space: Space) -> int:
    """How many numbers a vector becomes."""
    return math.prod(space.shape) * (space.classes if space.discrete else 1)


def small_side(size: int, stages: int) -> int:
    """What is left of an image's side after `stages` halvings."""
    small: int = size // 2**stages
    if size % 2**stages or not 3 <= small <= 16:
        raise ValueError(
            f"An image side of {size} cannot be halved {stages} times to 3 .. 16 pixels; resize the image."
        )
    return small


class Encoder:
    """Vectors through an MLP, images through convolutions that halve the size four times; both flat, side by side."""

    def __init__(self, spaces: Spaces, nets: Nets, compute: Compute) -> None:
        self.vectors, self.images = vectors_of(spaces), images_of(spaces)
        self.nets, self.compute = nets, compute

    @property
    def tokens(self) -> int:
        width = self.nets.units if self.vectors else 0
        for space in list(self.images.values())[:1]:
            sides = [small_side(side, len(self.nets.mults)) for side in space.shape[:2]]
            width += math.prod(sides) * self.nets.depth * self.nets.mults[-1]
        return width

    def init(self, init: Init) -> Params:
        params: Params = {}
        if self.vectors:
            inputs = sum(width_of(space) for space in self.vectors.values())
            params["vector"] = init.mlp(inputs, self.nets.units, self.nets.vector_layers)
        if self.images:
            channels = sum(space.shape[2] for space in self.images.values())
            for i, mult in enumerate(self.nets.mults):
                outputs = self.nets.depth * mult
                params[f"conv{i}"] = init.normed(init.conv(self.nets.kernel, channels, outputs))
                channels = outputs
        return params

    @jax.named_scope("encoder")
    def __call__(self, p: Params, obs: dict[str, Array]) -> Array:
        """Tokens of observations with any leading axes."""
        parts = []
        if self.vectors:
            parts.append(mlp(p["vector"], flat_vectors(self.vectors, obs).astype(self.compute.dtype)))
        if self.images:
            parts.append(self._see(p, jnp.concatenate([obs[key] for key in self.images], -1)))
        return jnp.concatenate(parts, -1)

    def _see(self, p: Params, x: Array) -> Array:
        lead = x.shape[:-3]
        x = (shared(x.reshape((-1, *x.shape[-3:]))).astype(jnp.float32) / 255 - 0.5).astype(self.compute.dtype)
        for i in range(len(self.nets.mults)):
            by_phase = self.compute.path == "fast" and i < self.compute.phase_convolutions
            convolve = convolutions.pooled_by_phase if by_phase else convolutions.pooled
            x = activate(p[f"conv{i}"], convolve(p[f"conv{i}"], x))
        return shared(x.reshape((*lead, -1)), len(lead) - 1)


def flat_vectors(spaces: Spaces, obs: dict[str, Array]) -> Array:
    """All vectors side by side: symlog of the continuous ones, one-hot of the discrete ones."""
    parts = []
    for key, space in spaces.items():
        x = obs[key]
        lead = x.shape[: x.ndim - len(space.shape)]
        if space.discrete:
            x = jax.nn.one_hot(x.astype(jnp.int32), space.classes)
        else:
            x = symlog(x.astype(jnp.float32))
        parts.append(x.reshape((*lead, -1)))
    return jnp.concatenate(parts, -1)
