"""Actions that are numbers: those of a Box, MultiDiscrete or MultiBinary space."""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from mosaic_sdk.config import ConfigError

from llm_worker.actions import IllegalAnswer
from llm_worker.config import FIRST, NOOP, RANDOM

MOST_NUMBERS = 64
_LARGEST = 1e6  # in place of an infinite bound


class Vector:
    """The numbers of a Box, MultiDiscrete or MultiBinary space, in one list."""

    def __init__(self, bounds: Sequence[tuple[float, float]], shape: Sequence[int], is_integer: bool) -> None:
        self.bounds, self.shape, self.is_integer = tuple(bounds), tuple(shape), is_integer

    def schema(self) -> dict[str, Any]:
        kind = {"type": "integer" if self.is_integer else "number"}
        return {"type": "array", "items": kind, "minItems": len(self.bounds), "maxItems": len(self.bounds)}

    @property
    def is_limited(self) -> bool:
        return False

    def all_listed(self) -> str:
        return self.listed()

    def listed(self) -> str:
        word = "integers" if self.is_integer else "numbers"
        ranges = ", ".join(f"{low:g} to {high:g}" for low, high in self.bounds)
        return f"a list of {len(self.bounds)} {word}, in these ranges: {ranges}"

    def parse(self, value: Any) -> Any:
        numbers = value if isinstance(value, list) else [value]
        if len(numbers) != len(self.bounds) or not all(self._is_number(number) for number in numbers):
            raise IllegalAnswer("wrong_type", f'"action" must be {self.listed()}.')
        for number, (low, high) in zip(numbers, self.bounds, strict=True):
            if not low <= number <= high:
                raise IllegalAnswer("out_of_range", f"{number:g} is not in the range {low:g} to {high:g}.")
        return _shaped([int(number) if self.is_integer else float(number) for number in numbers], self.shape)

    def find(self, text: str) -> Any:
        lists = re.findall(r"\[([-+.,\seE\d]*)\]", text)
        if not lists:
            raise IllegalAnswer("no_action", f"The answer holds no action. It must be {self.listed()}.")
        return self.parse([_number(part) for part in lists[-1].split(",")])

    def fallback(self, policy: str, random: Random) -> tuple[str, Any]:
        if policy == FIRST:
            return FIRST, self.parse([low for low, _ in self.bounds])
        if policy == NOOP and all(low <= 0 <= high for low, high in self.bounds):
            return NOOP, self.parse([0 for _ in self.bounds])
        return RANDOM, self.parse([self._draw(random, low, high) for low, high in self.bounds])

    def name_of(self, action: Any) -> Any:
        return action

    def _draw(self, random: Random, low: float, high: float) -> float:
        return random.randint(int(low), int(high)) if self.is_integer else random.uniform(low, high)

    def _is_number(self, value: Any) -> bool:
        return (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and (not self.is_integer or float(value).is_integer())
        )


def vector_of(kind: str, space: Mapping[str, Any]) -> Vector:
    if kind == "MultiDiscrete":
        sizes = _flat(space.get("nvec", []))
        starts = _flat(space.get("start", 0)) if "start" in space else [0]
        starts = starts * len(sizes) if len(starts) == 1 else starts
        bounds = [(start, start + size - 1) for start, size in zip(starts, sizes, strict=True)]
        return Vector(_few(bounds), [len(bounds)], True)
    if kind == "MultiBinary":
        shape = [int(size) for size in _flat(space.get("n", 0))]
        return Vector(_few([(0, 1)] * _product(shape)), shape, True)
    shape = [int(size) for size in space.get("shape", [])]
    count = _product(shape)
    lows, highs = (_bounds_of(space.get(name), count) for name in ("low", "high"))
    bounds = [(max(low, -_LARGEST), min(high, _LARGEST)) for low, high in zip(lows, highs, strict=True)]
    return Vector(_few(bounds), shape, "int" in str(space.get("dtype", "float32")))


def _few(bounds: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if not 0 < len(bounds) <= MOST_NUMBERS:
        raise ConfigError(
            f"action_space: a model writes at most {MOST_NUMBERS} numbers, and this one has {len(bounds)}."
        )
    return bounds


def _bounds_of(value: Any, count: int) -> list[float]:
    numbers = _flat(value)
    return numbers * count if len(numbers) == 1 else numbers


def _flat(value: Any) -> list[Any]:
    return [number for part in value for number in _flat(part)] if isinstance(value, list) else [value]


def _product(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _shaped(numbers: list[Any], shape: Sequence[int]) -> Any:
    if len(shape) <= 1:
        return numbers if shape else numbers[0]
    part = len(numbers) // shape[0]
    return [_shaped(numbers[start : start + part], shape[1:]) for start in range(0, len(numbers), part)]


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
