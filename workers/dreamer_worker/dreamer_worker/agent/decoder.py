"""Latent states back to observations, and how far off they are."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from dreamer_worker.agent import convolutions
from dreamer_worker.agent.config import Compute, Nets, Rssm
from dreamer_worker.agent.devices import shared
from dreamer_worker.agent.distributions import symexp, symlog
from dreamer_worker.agent.encoder import images_of, small_side, vectors_of, width_of
from dreamer_worker.agent.layers import Array, Init, Params, activate, block_linear, linear, mlp
from dreamer_worker.agent.spaces import Space, Spaces


class Decoder:
    """The encoder's mirror image. `deter` and `stoch` come flat, with any leading axes."""

    def __init__(self, spaces: Spaces, rssm: Rssm, nets: Nets, compute: Compute) -> None:
        self.vectors, self.images = vectors_of(spaces), images_of(spaces)
        self.rssm, self.nets, self.compute = rssm, nets, compute
        if self.images:
            shape = next(iter(self.images.values())).shape
            height, width = (small_side(side, len(nets.mults)) for side in shape[:2])
            self.small = (height, width, nets.depth * nets.mults[-1])

    def init(self, init: Init) -> Params:
        params: Params = {}
        stoch = self.rssm.stoch * self.rssm.classes
        if self.vectors:
            params["vector"] = init.mlp(stoch + self.rssm.deter, self.nets.units, self.nets.vector_layers)
            params["out"] = {k: init.linear(self.nets.units, width_of(s)) for k, s in self.vectors.items()}
        if self.images:
            size, units = math.prod(self.small), self.nets.units
            params["deter"] = init.block_linear(self.rssm.deter, size, self.rssm.blocks)
            params["stoch"] = init.normed(init.linear(stoch, 2 * units))
            params["space"] = init.linear(2 * units, size)
            params["start"] = {"scale": jnp.ones(self.small[-1])}
            channels = self.small[-1]
            for i, outputs in enumerate(self._channels()):
                layer = init.conv(self.nets.kernel, channels, outputs)
                params[f"conv{i}"] = init.normed(layer) if i < len(self.nets.mults) - 1 else layer
                channels = outputs
        return params

    def _channels(self) -> list[int]:
        hidden = [self.nets.depth * mult for mult in reversed(self.nets.mults[:-1])]
        return [*hidden, sum(space.shape[2] for space in self.images.values())]

    @jax.named_scope("decoder")
    def __call__(self, p: Params, deter: Array, stoch: Array) -> dict[str, Array]:
        """Raw predictions: symlog values or logits of vectors, intensities in 0 .. 1 of images."""
        found = {}
        if self.vectors:
            x = mlp(p["vector"], jnp.concatenate([stoch, deter], -1))
            found.update({key: linear(p["out"][key], x).astype(jnp.float32) for key in self.vectors})
        if self.images:
            picture, start = self._draw(p, deter, stoch), 0
            for key, space in self.images.items():
                found[key] = picture[..., start : start + space.shape[2]]
                start += space.shape[2]
        return found

    def _draw(self, p: Params, deter: Array, stoch: Array) -> Array:
        lead = deter.shape[:-1]
        height, width, channels = self.small
        deter, stoch = (shared(x.reshape(-1, x.shape[-1])) for x in (deter, stoch))
        blocks = self.rssm.blocks
        x = block_linear(p["deter"], deter).reshape(-1, blocks, height, width, channels // blocks)
        x = x.transpose(0, 2, 3, 1, 4).reshape(-1, *self.small)
        x = x + linear(p["space"], activate(p["stoch"], linear(p["stoch"], stoch))).reshape(-1, *self.small)
        x = activate(p["start"], x)
        fast = self.compute.path == "fast"
        convolve = convolutions.upsampled_by_phase if fast else convolutions.upsampled
        last = len(self.nets.mults) - 1
        for i in range(last):
            x = activate(p[f"conv{i}"], convolve(p[f"conv{i}"], x))
        x = jax.nn.sigmoid(convolve(p[f"conv{last}"], x).astype(jnp.float32))
        return shared(x.reshape((*lead, *x.shape[1:])), len(lead) - 1)

    def losses(self, found: dict[str, Array], obs: dict[str, Array]) -> dict[str, Array]:
        """Per key and step: squared error, of symlog for numbers, in 0 .. 1 for images; cross-entropy for classes."""
        losses = {k: _vector_loss(s, found[k], obs[k]) for k, s in self.vectors.items()}
        for key in self.images:
            error = jnp.square(found[key] - obs[key].astype(jnp.float32) / 255)
            losses[key] = error.sum((-3, -2, -1))
        return losses

    def observations(self, found: dict[str, Array]) -> dict[str, Array]:
        """Predictions in the units of the env; classes as their index."""
        predicted = {}
        for key, space in self.vectors.items():
            x = found[key]
            shaped = x.reshape((*x.shape[:-1], *space.shape, -1))
            predicted[key] = shaped.argmax(-1) if space.discrete else symexp(shaped[..., 0])
        for key in self.images:
            predicted[key] = (found[key] * 255).round().astype(jnp.uint8)
        return predicted


def _vector_loss(space: Space, found: Array, target: Array) -> Array:
    if space.discrete:
        target = target.reshape((*found.shape[:-1], -1)).astype(jnp.int32)
        log_probs = jax.nn.log_softmax(found.reshape((*target.shape, space.classes)))
        return -(log_probs * jax.nn.one_hot(target, space.classes)).sum((-2, -1))
    return jnp.square(found - symlog(target.reshape(found.shape).astype(jnp.float32))).sum(-1)
