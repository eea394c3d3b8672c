"""The small arrays of a batch as one: to send an array takes the host about as long whether it is small or not.

Large ones travel as they are: to copy them together would take longer than it saves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

NAME = "packed"
SMALL = 1 << 19  # bytes of one array


class Piece(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]


@partial(jax.tree_util.register_dataclass, data_fields=["data"], meta_fields=["pieces"])
@dataclass(frozen=True)
class Packed:
    """The bytes of several arrays on the last axis, one after the other."""

    data: Any
    pieces: tuple[Piece, ...]


def packed(arrays: Mapping[str, Any], lead: int = 0) -> dict[str, Any]:
    """`arrays` with the small ones together; the first `lead` axes, the same of all, stay axes."""
    wide = {key: np.asarray(x, jax.dtypes.canonicalize_dtype(np.asarray(x).dtype)) for key, x in arrays.items()}
    # The widest elements first, so that each piece starts at a multiple of its own width.
    names = sorted((key for key, x in wide.items() if x.nbytes <= SMALL), key=lambda key: (-wide[key].itemsize, key))
    if len(names) < 2:
        return wide
    pieces = tuple(Piece(key, wide[key].dtype.name, wide[key].shape[lead:]) for key in names)
    rows = [np.ascontiguousarray(wide[key]).reshape((*wide[key].shape[:lead], -1)).view(np.uint8) for key in names]
    together = Packed(np.concatenate(rows, -1), pieces)
    return {NAME: together, **{key: x for key, x in wide.items() if key not in names}}


def unpacked(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `packed`, inside a compiled function."""
    found = dict(arrays)
    together = found.pop(NAME, None)
    if together is None:
        return found
    begin = 0
    for name, dtype, shape in together.pieces:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        found[name] = _read(together.data[begin : begin + size], np.dtype(dtype), shape)
        begin += size
    return found


def _read(data: jax.Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> jax.Array:
    if dtype.kind == "b":
        return (data != 0).reshape(shape)
    rows = data if dtype.itemsize == 1 else data.reshape(-1, dtype.itemsize)
    return jax.lax.bitcast_convert_type(rows, jnp.dtype(dtype)).reshape(shape)
