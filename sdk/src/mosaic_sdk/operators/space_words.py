"""Spaces in words: what a space is, and how two of them differ."""

import math
from typing import Any, List, Mapping, Optional

from mosaic_sdk.operators.arrays import decode
from mosaic_sdk.player import Agent, CommandError, plain

Space = Mapping[str, Any]
DISCRETE, BOX, MULTI_DISCRETE, MULTI_BINARY = "Discrete", "Box", "MultiDiscrete", "MultiBinary"
DICT, TUPLE, TEXT = "Dict", "Tuple", "Text"
LARGEST = 1e30  # libraries write "no bound" as infinity or as the largest float


def words(space: Space) -> str:
    """A space as messages write it."""
    kind = space.get("type", "an unknown space")
    if kind == DISCRETE:
        start = f" from {space['start']}" if space.get("start") else ""
        return f"Discrete({space['n']}){start}"
    if kind == BOX:
        sides = ", ".join(str(side) for side in space["shape"])
        low, high = (_range_word(decode(space[name])) for name in ("low", "high"))
        return f"Box({sides}) of {space['dtype']} from {low} to {high}"
    if kind == MULTI_DISCRETE:
        return f"MultiDiscrete({space['nvec']})"
    if kind == MULTI_BINARY:
        return f"MultiBinary({space['n']})"
    if kind == DICT:
        return "Dict(" + ", ".join(f"{key}: {words(part)}" for key, part in space["spaces"].items()) + ")"
    if kind == TUPLE:
        return "Tuple(" + ", ".join(words(part) for part in space["spaces"]) + ")"
    return str(kind)


def difference(wanted: Optional[Space], given: Optional[Space]) -> str:
    """How `given` differs from `wanted` for a policy that was made for `wanted`, in words; "" if it does not matter.

    A space that was not given differs from none. Of numbers, only whole or not matters, not their width.
    """
    if not wanted or not given or _same(wanted, given):
        return ""
    return f"the policy needs {words(wanted)}, the environment has {words(given)}"


def require(agent: Agent, *, action_space: Optional[Space], observation_space: Optional[Space]) -> None:
    """CommandError if a policy that was made for these spaces cannot decide for the agent."""
    pairs = {"action_space": (action_space, agent.action_space)}
    pairs["observation_space"] = (observation_space, agent.observation_space)
    for name, (wanted, given) in pairs.items():
        reason = difference(wanted, given)
        if reason:
            raise CommandError(f"{name}: {reason}.")


def flat(value: Any) -> List[Any]:
    """The numbers of nested lists in order."""
    return [number for part in value for number in flat(part)] if isinstance(value, list) else [value]


def shape_of(value: Any) -> Optional[List[int]]:
    """The shape of nested lists; None if they are not a regular array."""
    if not isinstance(value, list):
        return []
    shapes = [shape_of(part) for part in value]
    if any(shape is None or shape != shapes[0] for shape in shapes):
        return None
    return [len(value), *(shapes[0] if shapes and shapes[0] else [])]


def shape_in(space: Space) -> List[int]:
    if space["type"] == BOX:
        return list(space["shape"])
    if space["type"] == MULTI_DISCRETE:
        return shape_of(space["nvec"]) or []
    n = space["n"]
    return list(n) if isinstance(n, list) else [n]


def is_whole_valued(space: Space) -> bool:
    return not str(space.get("dtype", "float32")).startswith("float")


def bounds_of(space: Space) -> "tuple[List[float], List[float]]":
    count = math.prod(shape_in(space))
    bounds = [plain(decode(space[name])) for name in ("low", "high")]
    low, high = (flat(bound) if isinstance(bound, list) else [bound] * count for bound in bounds)
    return low, high


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _same(one: Space, other: Space) -> bool:
    kind = one.get("type")
    if kind != other.get("type"):
        return False
    if kind == DISCRETE:
        return bool(one["n"] == other["n"] and one.get("start", 0) == other.get("start", 0))
    if kind == BOX:
        return (
            shape_in(one) == shape_in(other)
            and is_whole_valued(one) == is_whole_valued(other)
            and _same_bounds(one, other)
        )
    if kind == DICT:
        ours, theirs = one["spaces"], other["spaces"]
        return ours.keys() == theirs.keys() and all(_same(part, theirs[key]) for key, part in ours.items())
    if kind == TUPLE:
        ours, theirs = one["spaces"], other["spaces"]
        return len(ours) == len(theirs) and all(_same(part, there) for part, there in zip(ours, theirs))
    return bool(one.get("nvec") == other.get("nvec") and one.get("n") == other.get("n"))


def _same_bounds(one: Space, other: Space) -> bool:
    pairs = zip(bounds_of(one), bounds_of(other))
    return all(_close(a, b) for ours, theirs in pairs for a, b in zip(ours, theirs))


def _close(a: float, b: float) -> bool:
    is_open = abs(a) >= LARGEST
    return is_open == (abs(b) >= LARGEST) and (is_open or math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-6))


def _range_word(bound: Any) -> str:
    numbers = flat(plain(bound))
    low, high = min(numbers, default=0), max(numbers, default=0)
    return f"{low:g}" if low == high else f"{low:g}…{high:g}"
