"""A tree of arrays as a flat dict of numpy arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np


class Mismatch(ValueError):
    """What was saved does not fit this agent."""


def named(tree: Any) -> dict[str, np.ndarray]:
    """Every leaf under its path, `params/dyn/gates/kernel`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_name(path): np.array(leaf) for path, leaf in leaves}


def restored(template: Any, saved: Mapping[str, np.ndarray]) -> Any:
    """`saved` in the shape of `template`, or Mismatch with every difference."""
    leaves, treedef = jax.tree_util.tree_flatten_with_path(template)
    wanted = {_name(path): leaf for path, leaf in leaves}
    faults = [f"{name} is missing" for name in sorted(set(wanted) - set(saved))]
    faults += [f"{name} is unknown" for name in sorted(set(saved) - set(wanted))]
    for name in sorted(set(wanted) & set(saved)):
        want, have = wanted[name], np.asarray(saved[name])
        if want.shape != have.shape or want.dtype != have.dtype:
            faults.append(f"{name} is {have.dtype}{list(have.shape)}, not {want.dtype}{list(want.shape)}")
    if faults:
        raise Mismatch("These weights are not for this agent: " + "; ".join(faults) + ".")
    return jax.tree_util.tree_unflatten(treedef, [np.asarray(saved[_name(path)]) for path, _ in leaves])


def _name(path: Any) -> str:
    return "/".join(str(getattr(part, "key", getattr(part, "name", getattr(part, "idx", part)))) for part in path)
