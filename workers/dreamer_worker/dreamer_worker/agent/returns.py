"""Lambda returns, and the scale they are divided by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dreamer_worker.agent.config import Learning

Array = jax.Array
SHORT = 16  # steps, which the compiler makes one kernel of; of the rounds it makes a slow one


def lambda_returns(reward: Array, live: Array, boot: Array, lam: Array | float) -> Array:
    """For t = 0 .. T-2, with time on axis 0 and R of the last step equal to its `boot`:

    R[t] = reward[t+1] + live[t+1] * ((1 - lam[t+1]) * boot[t+1] + lam[t+1] * R[t+1])

    A linear recurrence, so a long one takes log T rounds instead of T steps.
    """
    lam = jnp.broadcast_to(jnp.asarray(lam, jnp.float32), boot.shape)
    known = reward[1:] + live[1:] * (1 - lam[1:]) * boot[1:]
    carried = live[1:] * lam[1:]
    if len(boot) <= SHORT:
        found = [boot[-1]]
        for one, share in zip(known[::-1], carried[::-1], strict=True):
            found.append(one + share * found[-1])
        return jnp.stack(found[:0:-1])
    known = jnp.concatenate([known, boot[-1:]])
    carried = jnp.concatenate([carried, jnp.zeros_like(carried[:1])])

    def join(later: tuple[Array, Array], earlier: tuple[Array, Array]) -> tuple[Array, Array]:
        return earlier[0] + earlier[1] * later[0], earlier[1] * later[1]

    returns: Array = jax.lax.associative_scan(join, (known, carried), reverse=True)[0]
    return returns[:-1]


def percentiles(x: Array, shares: Sequence[float]) -> Array:
    """As `jnp.percentile`; its sort also keeps the order of equal numbers, which takes longer."""
    ranked = jax.lax.sort(x.reshape(-1), is_stable=False)
    place = np.asarray(shares) / 100 * (x.size - 1)
    below = np.floor(place).astype(int)
    low, high = ranked[below], ranked[np.minimum(below + 1, x.size - 1)]
    # What is not a number comes last.
    return jnp.where(jnp.isnan(ranked[-1]), jnp.nan, low + (high - low) * jnp.asarray(place - below, jnp.float32))


class ReturnScale(NamedTuple):
    """Running 5th and 95th percentiles of the returns."""

    low: Array
    high: Array
    updates: Array

    @classmethod
    def initial(cls) -> ReturnScale:
        return cls(jnp.zeros(()), jnp.zeros(()), jnp.zeros((), jnp.int32))

    def updated(self, returns: Array, learning: Learning) -> ReturnScale:
        ends = percentiles(returns, [learning.return_low, learning.return_high])
        rate = learning.return_rate
        return ReturnScale(
            (1 - rate) * self.low + rate * ends[0], (1 - rate) * self.high + rate * ends[1], self.updates + 1
        )

    def divisor(self, learning: Learning) -> Array:
        """Never below the limit, so that noise in small returns is not amplified."""
        span = self.high - self.low
        if learning.return_debias:
            span = span / (1 - (1 - learning.return_rate) ** jnp.maximum(1, self.updates))
        return jnp.maximum(learning.return_limit, span)
