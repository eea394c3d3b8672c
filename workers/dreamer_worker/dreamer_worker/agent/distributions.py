"""Distributions over what the agent predicts. All of them work in float32."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array


def symlog(x: Array) -> Array:
    return jnp.sign(x) * jnp.log1p(jnp.abs(x))


def symexp(x: Array) -> Array:
    return jnp.sign(x) * jnp.expm1(jnp.abs(x))


@dataclass(frozen=True)
class Categorical:
    """One of the classes on the last axis; `event` axes before it are one draw together."""

    logits: Array
    event: int = 0

    @classmethod
    def mixed(cls, logits: Array, unimix: float, event: int = 0) -> Categorical:
        """`unimix` of the probability spread evenly, so that no class is ever impossible."""
        logits = logits.astype(jnp.float32)
        if unimix:
            probs = (1 - unimix) * jax.nn.softmax(logits) + unimix / logits.shape[-1]
            return cls(jnp.log(probs), event)
        return cls(jax.nn.log_softmax(logits), event)

    @property
    def probs(self) -> Array:
        return jnp.exp(self.logits)

    def _sum(self, x: Array) -> Array:
        return x.sum(tuple(range(-self.event, 0))) if self.event else x

    def sample(self, gumbel: Array) -> Array:
        return jnp.argmax(self.logits + gumbel, -1)

    def mode(self) -> Array:
        return jnp.argmax(self.logits, -1)

    def log_prob(self, index: Array) -> Array:
        picked = jax.nn.one_hot(index, self.logits.shape[-1], dtype=jnp.float32)
        return self._sum((self.logits * picked).sum(-1))

    def entropy(self) -> Array:
        return -self._sum((self.probs * self.logits).sum(-1))

    def kl(self, other: Categorical) -> Array:
        return self._sum((self.probs * (self.logits - other.logits)).sum(-1))

    def straight_through(self, onehot: Array) -> Array:
        """`onehot` going forward, the gradient of the probabilities going back."""
        probs = self.probs
        return jax.lax.stop_gradient(onehot) + probs - jax.lax.stop_gradient(probs)


@dataclass(frozen=True)
class Normal:
    """Independent normals, the last `event` axes one draw together. Draws are not squashed: the env clips them."""

    mean: Array
    std: Array
    event: int = 0

    def _sum(self, x: Array) -> Array:
        return x.sum(tuple(range(-self.event, 0))) if self.event else x

    def sample(self, noise: Array) -> Array:
        return self.mean + self.std * noise

    def mode(self) -> Array:
        return self.mean

    def log_prob(self, x: Array) -> Array:
        z = (x - self.mean) / self.std
        return self._sum(-0.5 * jnp.square(z) - jnp.log(self.std) - 0.5 * math.log(2 * math.pi))

    def entropy(self) -> Array:
        return self._sum(jnp.log(self.std) + 0.5 * math.log(2 * math.pi * math.e))


def bins_of(count: int) -> np.ndarray:
    """`count` (odd) values, exponentially spaced and symmetric about zero, in raw units."""
    half = np.linspace(-20, 0, count // 2 + 1, dtype=np.float32)
    half = -np.expm1(-half)
    return np.concatenate([half, -half[-2::-1]])


@dataclass(frozen=True)
class TwoHot:
    """A number as weights on bins. With all logits equal the prediction is exactly zero."""

    logits: Array
    bins: np.ndarray

    def pred(self) -> Array:
        """The mean, each bin added to its mirror image first, so that large bins cancel instead of rounding."""
        probs = jax.nn.softmax(self.logits.astype(jnp.float32))
        middle = len(self.bins) // 2
        positive = probs[..., middle + 1 :] - probs[..., middle - 1 :: -1] if middle else probs[..., :0]
        return (positive * self.bins[middle + 1 :]).sum(-1)

    def loss(self, target: Array) -> Array:
        """Cross-entropy with the target's share on its two neighbouring bins, linear in raw units."""
        log_probs = jax.nn.log_softmax(self.logits.astype(jnp.float32))
        return -(log_probs * jax.lax.stop_gradient(self.weights(target))).sum(-1)

    def weights(self, target: Array) -> Array:
        bins, last = jnp.asarray(self.bins), len(self.bins) - 1
        target = target.astype(jnp.float32)[..., None]
        below = jnp.clip((bins <= target).sum(-1) - 1, 0, last)
        above = jnp.clip(below + 1, 0, last)
        low, high = bins[below], bins[above]
        share = jnp.where(high > low, (target[..., 0] - low) / jnp.maximum(high - low, 1e-30), 0.0)
        share = jnp.clip(share, 0.0, 1.0)[..., None]
        index = jnp.arange(last + 1)
        return (index == below[..., None]) * (1 - share) + (index == above[..., None]) * share
