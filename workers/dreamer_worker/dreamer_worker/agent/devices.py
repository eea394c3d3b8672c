"""Where an agent computes: one device, or several that share each batch (data-parallel).

With several, every device has all weights and a share of the sequences; the compiler adds the exchange of gradients.
The numbers are those of one device, up to rounding.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from dreamer_worker.agent.config import Compute

AXIS = "batch"


def shared(x: jax.Array, axis: int = 0) -> jax.Array:
    """Inside a function that is compiled `together`: each device computes its share of the rows on `axis`.

    The compiler finds the shares of what follows, except behind a reshape of time and batch to one axis: it would have
    every device compute all rows from there on.
    """
    if jax.sharding.get_abstract_mesh().empty:
        return x
    split = PartitionSpec(*[None] * axis, AXIS)  # type: ignore[no-untyped-call]
    rows: jax.Array = jax.lax.with_sharding_constraint(x, split)  # type: ignore[no-untyped-call]
    return rows


class Devices:
    """The learner's devices and the policy's."""

    def __init__(self, compute: Compute) -> None:
        found = jax.devices()
        count = compute.devices or len(found)
        if count > len(found):
            raise ValueError(f"compute.devices is {count}, but JAX finds only {len(found)}: {found[0].device_kind}.")
        self.count = count
        self._mesh = Mesh(np.asarray(found[:count]), (AXIS,)) if count > 1 else None
        self._policy = _named(compute.policy_device) or (found[0] if count > 1 else None)

    def together(self) -> AbstractContextManager[Any]:
        """Around the calls of what all devices compute: `shared` has an effect there."""
        return nullcontext() if self._mesh is None else jax.set_mesh(self._mesh)

    def everywhere(self, tree: Any) -> Any:
        """All of it on every device."""
        return tree if self._mesh is None else jax.device_put(tree, self._placed())

    def split(self, tree: Any, axis: int = 0) -> Any:
        """Each device's share of the sequences, which are on `axis`; on its way when this returns."""
        if self._mesh is None:
            return jax.device_put(tree)
        rows = {np.shape(x)[axis] for x in jax.tree.leaves(tree)}
        if uneven := [row for row in rows if row % self.count]:
            raise ValueError(f"A batch of {uneven[0]} sequences cannot be shared evenly by {self.count} devices.")
        return jax.device_put(tree, self._placed(*[None] * axis, AXIS))

    def keep_everywhere(self, tree: Any) -> Any:
        """Inside a compiled function: the result is as `everywhere`."""
        if self._mesh is None:
            return tree
        return jax.lax.with_sharding_constraint(tree, self._placed())  # type: ignore[no-untyped-call]

    def _placed(self, *axes: str | None) -> NamedSharding:
        """Which axis is split between the devices; without one, nothing is."""
        assert self._mesh is not None
        return NamedSharding(self._mesh, PartitionSpec(*axes))  # type: ignore[no-untyped-call]

    def for_policy(self, tree: Any) -> Any:
        return tree if self._policy is None else jax.device_put(tree, self._policy)


def _named(name: str) -> Any:
    """The device called `cpu` or `gpu:1`; None for an empty name."""
    if not name:
        return None
    kind, _, index = name.partition(":")
    return jax.devices(kind)[int(index or 0)]
