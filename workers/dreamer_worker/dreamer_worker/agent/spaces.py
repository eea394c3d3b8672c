"""What an observation or an action may be: a dtype, a shape and bounds, named by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Keys that an env adds beside its sensors; the agent learns from them and never encodes them.
BOOKKEEPING = ("reward", "is_first", "is_last", "is_terminal")


@dataclass(frozen=True)
class Space:
    """Arrays of one dtype and shape.

    Integers are discrete, in [low, high); `Space("int32", (), 0, 17)` is a choice of 17. uint8 with three axes is an
    image, height x width x channels. Floats are continuous, in [low, high] where the bounds are known.
    """

    dtype: str
    shape: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype).name)
        object.__setattr__(self, "shape", tuple(int(size) for size in self.shape))
        if self.discrete and not self.is_image and self.dtype != "bool" and not self.classes > 0:
            raise ValueError(f"A discrete space needs bounds, low < high: {self}")

    @property
    def is_image(self) -> bool:
        return self.dtype == "uint8" and len(self.shape) == 3

    @property
    def discrete(self) -> bool:
        return self.dtype == "bool" or np.issubdtype(np.dtype(self.dtype), np.integer)

    @property
    def classes(self) -> int:
        """How many values one element of a discrete space may take."""
        if self.dtype == "bool":
            return 2
        if self.low is None or self.high is None:
            return 0
        if self.low != 0:
            raise ValueError(f"A discrete space starts at 0: {self}")
        return int(self.high)

    def zeros(self, *batch: int) -> np.ndarray:
        return np.zeros((*batch, *self.shape), self.dtype)

    def sample(self, rng: np.random.Generator, *batch: int) -> np.ndarray:
        """Values drawn uniformly within the bounds; standard normal where a float has none."""
        shape = (*batch, *self.shape)
        if self.is_image:
            return rng.integers(0, 256, shape, np.uint8)
        if self.discrete:
            return rng.integers(0, self.classes, shape).astype(self.dtype)
        if self.low is None or self.high is None:
            return rng.standard_normal(shape).astype(self.dtype)
        return rng.uniform(self.low, self.high, shape).astype(self.dtype)

    def to_dict(self) -> dict[str, Any]:
        return {"dtype": self.dtype, "shape": list(self.shape), "low": self.low, "high": self.high}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Space:
        return cls(fields["dtype"], tuple(fields["shape"]), fields["low"], fields["high"])


Spaces = dict[str, Space]
