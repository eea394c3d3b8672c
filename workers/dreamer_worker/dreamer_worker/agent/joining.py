"""The many small arrays of a state as one: each that a call takes or returns costs the host microseconds.

Large ones stay apart: to copy them at every update would take longer than it saves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

SMALL = 1 << 18  # elements of one array


class Joint:
    """How a tree of arrays becomes few arrays: all its small float32 ones in a row, then the others."""

    def __init__(self, template: Any, small: int = SMALL) -> None:
        leaves, self._tree = jax.tree.flatten(template)
        self._shapes = [leaf.shape for leaf in leaves]
        self._inside = [leaf.dtype == jnp.float32 and math.prod(leaf.shape) <= small for leaf in leaves]

    def join(self, tree: Any) -> list[jax.Array]:
        """Inside a compiled function, as `split`."""
        leaves = list(zip(jax.tree.leaves(tree), self._inside, strict=True))
        row = [leaf.reshape(-1) for leaf, is_inside in leaves if is_inside]
        others = [leaf for leaf, is_inside in leaves if not is_inside]
        return [jnp.concatenate(row) if row else jnp.zeros(0), *others]

    def split(self, parts: list[jax.Array]) -> Any:
        (row, *others), begin, leaves = parts, 0, []
        for shape, is_inside in zip(self._shapes, self._inside, strict=True):
            if not is_inside:
                leaves.append(others.pop(0))
                continue
            end = begin + math.prod(shape)
            leaves.append(row[begin:end].reshape(shape))
            begin = end
        return jax.tree.unflatten(self._tree, leaves)


@jax.tree_util.register_pytree_node_class
class Numbers(Mapping[str, Any]):
    """Named scalars in one array, which is fetched from the device when the first of them is read."""

    def __init__(self, names: tuple[str, ...], row: Any) -> None:
        self._names, self._row = names, row

    @classmethod
    def of(cls, scalars: Mapping[str, Any]) -> Numbers:
        names = tuple(sorted(scalars))
        return cls(names, jnp.stack([jnp.asarray(scalars[name], jnp.float32) for name in names]))

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        self._row = np.asarray(self._row)
        return self._row[self._names.index(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def tree_flatten(self) -> tuple[tuple[Any], tuple[str, ...]]:
        return (self._row,), self._names

    @classmethod
    def tree_unflatten(cls, names: tuple[str, ...], rows: tuple[Any]) -> Numbers:
        return cls(names, rows[0])
