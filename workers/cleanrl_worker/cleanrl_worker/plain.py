"""Values that `torch.load(weights_only=True)` accepts: numbers, strings, tensors, and lists and dicts of these.

What torch would pickle as a class (numpy arrays and scalars, tuples, deques, JAX arrays) is written as a dict with a
mark and converted back when it is read. Anything else raises `NotPlain`. Loading a checkpoint never runs code.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

_MARK = "__mosaic__"
_ATOMS = (bool, int, float, str, bytes, type(None))
# torch before 2.3 has none of these types, and later versions cannot compute with them: stored as numpy bytes.
_AS_BYTES = ("uint16", "uint32", "uint64")


class NotPlain(Exception):
    """A value that cannot be written; the message names its type."""


def to_plain(value: Any) -> Any:
    if type(value) in _ATOMS:
        return value
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value)
    if _is_jax(value):
        return {_MARK: "jax", "value": to_plain(np.asarray(value))}
    raise NotPlain(type(value).__qualname__)


def from_plain(value: Any) -> Any:
    if isinstance(value, dict):
        mark = value.get(_MARK)
        return _READERS[mark](value) if mark else {key: from_plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [from_plain(part) for part in value]
    return value


def _write_array(value: NDArray[Any]) -> dict[str, Any]:
    if value.dtype.kind not in "biuf":
        raise NotPlain(f"array of {value.dtype}")
    if value.dtype.name in _AS_BYTES or value.dtype.name == "longdouble":
        return {_MARK: "bytes", "dtype": value.dtype.str, "shape": list(value.shape), "value": value.tobytes()}
    return {_MARK: "array", "value": torch.from_numpy(np.array(value, order="C"))}


def _read_bytes(written: dict[str, Any]) -> NDArray[Any]:
    return np.frombuffer(written["value"], dtype=written["dtype"]).reshape(written["shape"]).copy()


def _write_scalar(value: np.generic) -> dict[str, Any]:
    if value.dtype.kind not in "biuf":
        raise NotPlain(f"numpy {value.dtype}")
    return {_MARK: "scalar", "dtype": value.dtype.str, "value": value.tobytes()}


def _write_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    if any(type(key) not in _ATOMS for key in value):
        raise NotPlain("dict with keys that are neither numbers nor strings")
    return {key: to_plain(part) for key, part in value.items()}


def _write_tuple(value: tuple[Any, ...]) -> dict[str, Any]:
    if hasattr(value, "_fields"):
        raise NotPlain(type(value).__qualname__)  # a named tuple would lose its names
    return {_MARK: "tuple", "value": [to_plain(part) for part in value]}


def _write_deque(value: "deque[Any]") -> dict[str, Any]:
    return {_MARK: "deque", "most": value.maxlen, "value": [to_plain(part) for part in value]}


def _read_jax(written: dict[str, Any]) -> Any:
    import jax.numpy as jnp  # installed, because a JAX script wrote it

    return jnp.asarray(from_plain(written["value"]))


def _is_jax(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in ("jaxlib", "jax") and hasattr(value, "dtype")


_WRITERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (np.ndarray, _write_array),
    (np.generic, _write_scalar),
    (dict, _write_dict),
    (list, lambda value: [to_plain(part) for part in value]),
    (tuple, _write_tuple),
    (deque, _write_deque),
)
_READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "array": lambda written: written["value"].numpy().copy(),
    "bytes": _read_bytes,
    "scalar": lambda written: np.frombuffer(written["value"], dtype=written["dtype"])[0],
    "tuple": lambda written: tuple(from_plain(part) for part in written["value"]),
    "deque": lambda written: deque((from_plain(part) for part in written["value"]), written["most"]),
    "jax": _read_jax,
}
