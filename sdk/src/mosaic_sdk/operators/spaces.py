"""Spaces of Gymnasium's kind, described as plain data, without Gymnasium.

    {"type": "Discrete", "n": 7, "start": 0}                     {"type": "MultiBinary", "n": 4}
    {"type": "Box", "shape": [7, 7, 3], "dtype": "uint8",        {"type": "Dict", "spaces": {"image": {…}, …}}
     "low": 0, "high": 255}                                      {"type": "Tuple", "spaces": [{…}, …]}
    {"type": "MultiDiscrete", "nvec": [3, 2]}                    {"type": "Text"}

`low` and `high` are one number if all elements have the same, else nested lists. Actions and samples are plain data.
"""

import math
import random
from typing import Any, List, Mapping, Optional, Sequence

from mosaic_sdk.operators.arrays import encode
from mosaic_sdk.operators.space_words import (
    BOX,
    DICT,
    DISCRETE,
    LARGEST,
    MULTI_BINARY,
    MULTI_DISCRETE,
    TEXT,
    TUPLE,
    Space,
    bounds_of,
    difference,
    flat,
    is_whole_valued,
    require,
    shape_in,
    shape_of,
    short,
    words,
)
from mosaic_sdk.player import plain

__all__ = [
    "Space",
    "SpaceError",
    "describe",
    "difference",
    "first_allowed",
    "illegal",
    "neutral",
    "require",
    "sample",
    "words",
]


_ALSO_TEXT = ("MissionSpace",)  # MiniGrid's


class SpaceError(ValueError):
    """A space or a mask that cannot be used. The text says why."""


def describe(space: Any) -> Space:
    """A Gymnasium-like space as plain data."""
    kind = _kind(space)
    if kind == DISCRETE:
        return {"type": kind, "n": int(space.n), "start": int(getattr(space, "start", 0))}
    if kind == BOX:
        bounds = {"low": _bound(space.low), "high": _bound(space.high)}
        return {"type": kind, "shape": [int(side) for side in space.shape], "dtype": str(space.dtype), **bounds}
    if kind == MULTI_DISCRETE:
        return {"type": kind, "nvec": plain(space.nvec)}
    if kind == MULTI_BINARY:
        return {"type": kind, "n": plain(space.n)}
    if kind == DICT:
        return {"type": kind, "spaces": {str(key): describe(part) for key, part in space.spaces.items()}}
    if kind == TUPLE:
        return {"type": kind, "spaces": [describe(part) for part in space.spaces]}
    return {"type": kind}


def sample(space: Space, rng: random.Random, mask: Optional[Any] = None) -> Any:
    """A random element. `mask`, for Discrete: a 0 or 1 per value; for MultiDiscrete: one such list per value."""
    kind = space["type"]
    if kind == DISCRETE:
        return rng.choice(_allowed(space, mask))
    if kind == MULTI_DISCRETE:
        return _sample_each(space["nvec"], mask, rng)
    if kind == MULTI_BINARY:
        return _filled(shape_in(space), lambda: rng.randrange(2))
    if kind == BOX:
        return _sample_box(space, rng)
    if kind == DICT:
        masks = mask if isinstance(mask, Mapping) else {}
        return {key: sample(part, rng, masks.get(key)) for key, part in space["spaces"].items()}
    if kind == TUPLE:
        return [sample(part, rng) for part in space["spaces"]]
    raise SpaceError(f"No random action can be drawn from {words(space)}.")


def neutral(space: Space) -> Any:
    """The smallest element, or the one nearest to zero: what an agent does that does nothing."""
    kind = space["type"]
    if kind == DISCRETE:
        return space.get("start", 0)
    if kind == MULTI_DISCRETE:
        return _zeros_like(space["nvec"])
    if kind == MULTI_BINARY:
        return _filled(shape_in(space), lambda: 0)
    if kind == BOX:
        return _map_bounds(space, lambda low, high: _of_dtype(space, min(max(0.0, low), high)))
    if kind == DICT:
        return {key: neutral(part) for key, part in space["spaces"].items()}
    if kind == TUPLE:
        return [neutral(part) for part in space["spaces"]]
    raise SpaceError(f"There is no action that does nothing in {words(space)}.")


def first_allowed(space: Space, mask: Any) -> Any:
    """The smallest element that the mask allows."""
    if space["type"] == DISCRETE:
        return _allowed(space, mask)[0]
    if space["type"] == MULTI_DISCRETE and mask is not None:
        return [_ones(part)[0] for part in mask]
    return neutral(space)


def illegal(space: Space, action: Any, mask: Optional[Any] = None) -> str:
    """Why `action` is not one of the space, in words; "" if it is."""
    action, kind = plain(action), space["type"]
    if kind == DISCRETE:
        return _illegal_choice(space, action, mask)
    if kind in (DICT, TUPLE):
        return _illegal_parts(space, action)
    if kind not in (BOX, MULTI_DISCRETE, MULTI_BINARY):
        return "" if isinstance(action, str) else f"{action!r} is not a text."
    shape = shape_in(space)
    if shape_of(action) != shape:
        return f"{short(action)} must have the shape {shape}."
    if kind == BOX:
        low, high = bounds_of(space)
        return _outside(flat(action), low, high, is_whole_valued(space))
    tops = flat(space["nvec"]) if kind == MULTI_DISCRETE else [2] * math.prod(shape)
    return _outside(flat(action), [0] * len(tops), [top - 1 for top in tops], True)


def _kind(space: Any) -> str:
    # Also a class of a library that is derived from Gymnasium's.
    known = (DISCRETE, BOX, MULTI_DISCRETE, MULTI_BINARY, DICT, TUPLE, TEXT)
    bases = [base.__name__ for base in type(space).__mro__]
    if any(name in _ALSO_TEXT for name in bases):
        return TEXT
    return next((name for name in bases if name in known), type(space).__name__)


def _bound(bound: Any) -> Any:
    numbers = flat(plain(bound))
    return numbers[0] if numbers and all(number == numbers[0] for number in numbers) else encode(bound)


def _allowed(space: Space, mask: Optional[Any]) -> List[int]:
    start, n = int(space.get("start", 0)), int(space["n"])
    if mask is None:
        return list(range(start, start + n))
    if len(mask) != n:
        raise SpaceError(f"action_mask: must have {n} elements, not {len(mask)}.")
    return [start + place for place in _ones(mask)]


def _ones(mask: Sequence[Any]) -> List[int]:
    places = [place for place, is_allowed in enumerate(mask) if is_allowed]
    if not places:
        raise SpaceError("action_mask: must allow at least one of the actions.")
    return places


def _sample_each(tops: Any, mask: Optional[Any], rng: random.Random) -> List[Any]:
    masks = [None] * len(tops) if mask is None else mask
    return [
        _sample_each(top, part, rng) if isinstance(top, list) else rng.choice(_allowed({"n": top}, part))
        for top, part in zip(tops, masks)
    ]


def _sample_box(space: Space, rng: random.Random) -> Any:
    def draw(low: float, high: float) -> Any:
        if is_whole_valued(space):
            return rng.randint(math.ceil(max(low, -(2**31))), math.floor(min(high, 2**31 - 1)))
        if abs(low) < LARGEST and abs(high) < LARGEST:
            return rng.uniform(low, high)
        if abs(low) < LARGEST:
            return low + rng.expovariate(1.0)
        return high - rng.expovariate(1.0) if abs(high) < LARGEST else rng.gauss(0.0, 1.0)

    return _map_bounds(space, draw)


def _map_bounds(space: Space, make: Any) -> Any:
    low, high = bounds_of(space)
    pairs = iter(list(zip(low, high)))
    return _filled(shape_in(space), lambda: make(*next(pairs)))


def _filled(shape: Sequence[int], make: Any) -> Any:
    return [_filled(shape[1:], make) for _ in range(shape[0])] if shape else make()


def _zeros_like(tops: Any) -> Any:
    return [_zeros_like(top) for top in tops] if isinstance(tops, list) else 0


def _of_dtype(space: Space, value: float) -> Any:
    return int(value) if is_whole_valued(space) else float(value)


def _illegal_choice(space: Space, action: Any, mask: Optional[Any]) -> str:
    start, n = int(space.get("start", 0)), int(space["n"])
    is_integer = isinstance(action, int) and not isinstance(action, bool)
    if not is_integer or not start <= action < start + n:
        return f"{short(action)} is not an integer from {start} to {start + n - 1}."
    if mask is not None and action not in _allowed(space, mask):
        return f"{action} is not allowed by action_mask."
    return ""


def _illegal_parts(space: Space, action: Any) -> str:
    parts = space["spaces"]
    if isinstance(parts, Mapping):
        if not isinstance(action, dict) or action.keys() != parts.keys():
            return f"{short(action)} must be an object with the keys {', '.join(parts)}."
        reasons = {key: illegal(part, action[key]) for key, part in parts.items()}
    else:
        if not isinstance(action, list) or len(action) != len(parts):
            return f"{short(action)} must be a list of {len(parts)}."
        reasons = {str(place): illegal(part, action[place]) for place, part in enumerate(parts)}
    return next((f"{key}: {reason}" for key, reason in reasons.items() if reason), "")


def _outside(numbers: List[Any], low: List[float], high: List[float], is_whole: bool) -> str:
    for number, bottom, top in zip(numbers, low, high):
        if not isinstance(number, (int, float)) or (isinstance(number, bool) and not is_whole):
            return f"{short(number)} is not a number."
        if is_whole and isinstance(number, float) and not number.is_integer():
            return f"{number!r} is not an integer."
        # 32-bit bounds: what a policy clips to 0.1 is a little more than that as a 64-bit float.
        slack = 0.0 if is_whole else 1e-6 * max(1.0, min(abs(bottom), LARGEST), min(abs(top), LARGEST))
        if not bottom - slack <= number <= top + slack:
            return f"{number!r} is not between {bottom:g} and {top:g}."
    return ""
