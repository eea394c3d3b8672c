"""Predictions from a latent state: reward, continuation, value and policy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from dreamer_worker.agent.config import Nets
from dreamer_worker.agent.distributions import Categorical, Normal, TwoHot, bins_of
from dreamer_worker.agent.layers import Array, Init, Params, linear, mlp
from dreamer_worker.agent.spaces import Space, Spaces

Policy = dict[str, Categorical | Normal]


@dataclass(frozen=True)
class Number:
    """A number of any scale, as weights on bins. Initially it predicts zero."""

    nets: Nets
    layers: int

    def init(self, init: Init, inputs: int) -> Params:
        body = init.mlp(inputs, self.nets.units, self.layers)
        return {"body": body, "out": init.linear(self.nets.units, self.nets.bins, scale=0.0)}

    def __call__(self, p: Params, feature: Array) -> TwoHot:
        return TwoHot(linear(p["out"], mlp(p["body"], feature)), self.bins)

    @property
    def bins(self) -> np.ndarray:
        return bins_of(self.nets.bins)


@dataclass(frozen=True)
class Chance:
    """The logit of a probability."""

    nets: Nets
    layers: int

    def init(self, init: Init, inputs: int) -> Params:
        return {"body": init.mlp(inputs, self.nets.units, self.layers), "out": init.linear(self.nets.units, 1)}

    def __call__(self, p: Params, feature: Array) -> Array:
        return linear(p["out"], mlp(p["body"], feature))[..., 0].astype(jnp.float32)


@dataclass(frozen=True)
class PolicyHead:
    """One distribution per action key: categorical for choices, a bounded normal for numbers."""

    nets: Nets
    space: Spaces

    def init(self, init: Init, inputs: int) -> Params:
        params: Params = {"body": init.mlp(inputs, self.nets.units, self.nets.policy_layers)}
        for key in sorted(self.space):
            for name in _outputs(self.space[key]):
                size = _size(self.space[key])
                params[f"{name}/{key}"] = init.linear(self.nets.units, size, self.nets.policy_outscale)
        return params

    def __call__(self, p: Params, feature: Array) -> Policy:
        return self.read(p, mlp(p["body"], feature))

    def read(self, p: Params, x: Array) -> Policy:
        """The policy, given its last hidden layer."""
        return {key: self._one(p, key, x) for key in sorted(self.space)}

    def _one(self, p: Params, key: str, x: Array) -> Categorical | Normal:
        space, nets = self.space[key], self.nets
        shaped = {
            name: linear(p[f"{name}/{key}"], x).astype(jnp.float32).reshape((*x.shape[:-1], *space.shape, -1))
            for name in _outputs(space)
        }
        if space.discrete:
            return Categorical.mixed(shaped["logits"], nets.policy_unimix, len(space.shape))
        std = (nets.max_std - nets.min_std) * jax.nn.sigmoid(shaped["std"][..., 0] + 2.0) + nets.min_std
        return Normal(jnp.tanh(shaped["mean"][..., 0]), std, len(space.shape))

    def noise(self, key: Array, *lead: int) -> dict[str, Array]:
        """What `sample` needs to draw actions."""
        noise = {}
        for name, one in zip(sorted(self.space), jax.random.split(key, len(self.space)), strict=True):
            space = self.space[name]
            shape = (*lead, *space.shape)
            discrete = space.discrete
            noise[name] = jax.random.gumbel(one, (*shape, space.classes)) if discrete else jax.random.normal(one, shape)
        return noise

    def encode(self, actions: dict[str, Array], dtype: str) -> Array:
        """Actions as the world model takes them: one-hot or raw, side by side in sorted order."""
        parts = []
        for key in sorted(self.space):
            space, x = self.space[key], actions[key]
            lead = x.shape[: x.ndim - len(space.shape)]
            if space.discrete:
                x = jax.nn.one_hot(x.astype(jnp.int32), space.classes, dtype=dtype)
            parts.append(x.astype(dtype).reshape((*lead, -1)))
        return jnp.concatenate(parts, -1)

    @property
    def width(self) -> int:
        """The size of an encoded action."""
        return sum(_size(space) for space in self.space.values())


def _outputs(space: Space) -> tuple[str, ...]:
    return ("logits",) if space.discrete else ("mean", "std")


def _size(space: Space) -> int:
    return math.prod(space.shape) * (space.classes if space.discrete else 1)


def sample(policy: Policy, noise: dict[str, Array]) -> dict[str, Array]:
    return {key: one.sample(noise[key]) for key, one in policy.items()}


def mode(policy: Policy) -> dict[str, Array]:
    return {key: one.mode() for key, one in policy.items()}


def log_prob(policy: Policy, actions: dict[str, Array]) -> Array:
    return jnp.stack([one.log_prob(actions[key]) for key, one in policy.items()]).sum(0)


def entropy(policy: Policy) -> Array:
    return jnp.stack([one.entropy() for one in policy.values()]).sum(0)
