"""Which sequences are replayed. A sequence is identified by its first row; the buffer reports additions and removals.

rows       0 … capacity-1, in blocks of `block_rows`; only some may start a sequence
uniform    every start with the same chance
priority   by the priority that the learner last set; new ones get the highest seen
recency    the newer the likelier
mixture    each draw from one of them, by its share
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np


class Selector(Protocol):
    def add(self, rows: np.ndarray) -> None: ...
    def drop_block(self, block: int) -> None: ...
    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray: ...
    def prioritize(self, rows: np.ndarray, priorities: np.ndarray) -> None: ...


def make_selector(shares: dict[str, float], capacity: int, block_rows: int) -> Selector:
    """The selector that these shares describe, e.g. {"uniform": 1.0} or {"uniform": 0.5, "priority": 0.5}."""
    kinds: dict[str, Callable[[int, int], Selector]] = {
        "uniform": Uniform,
        "priority": Prioritized,
        "recency": Recent,
    }
    unknown = set(shares) - set(kinds)
    if unknown:
        raise ValueError(f"There is no selector {sorted(unknown)[0]!r}. Choose from: {', '.join(kinds)}.")
    chosen = {name: share for name, share in shares.items() if share > 0}
    if not chosen:
        raise ValueError("No selector has a share above 0. Set one, such as uniform: 1.")
    made = [kinds[name](capacity, block_rows) for name in chosen]
    return made[0] if len(made) == 1 else Mixture(made, list(chosen.values()))


class Uniform:
    """Every start with the same chance.

    The starts of a block are its first rows without a hole (a row may start a sequence only after the one before it
    may), so one number per block is enough, and a draw is one search over the blocks.
    """

    def __init__(self, capacity: int, block_rows: int) -> None:
        self._block_rows = block_rows
        self._starts = np.zeros(-(-capacity // block_rows), np.int64)
        self._until: np.ndarray | None = None  # running total of starts; recomputed after a change

    def __len__(self) -> int:
        return int(self._totals()[-1])

    def add(self, rows: np.ndarray) -> None:
        np.add.at(self._starts, rows // self._block_rows, 1)
        self._until = None

    def drop_block(self, block: int) -> None:
        self._starts[block] = 0
        self._until = None

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        until = self._totals()
        picks = rng.integers(0, until[-1], count)
        blocks = np.searchsorted(until, picks, side="right")
        return blocks * self._block_rows + picks - (until[blocks] - self._starts[blocks])

    def prioritize(self, rows: np.ndarray, priorities: np.ndarray) -> None:
        pass

    def _totals(self) -> np.ndarray:
        if self._until is None:
            self._until = np.cumsum(self._starts)
        return self._until


class Prioritized:
    """A start with chance proportional to priority ** `exponent`; kept in a tree of sums, all in numpy."""

    FANOUT = 16

    def __init__(self, capacity: int, block_rows: int, exponent: float = 0.8) -> None:
        self._block_rows = block_rows
        self._exponent = exponent
        self._highest = 1.0
        self._is_start = np.zeros(capacity, bool)
        self._levels = _empty_tree(capacity, self.FANOUT)

    def add(self, rows: np.ndarray) -> None:
        # A new sequence gets the highest priority: it is replayed soon, and then the learner sets its own.
        self._is_start[rows] = True
        self._set(rows, np.full(len(rows), self._highest))

    def drop_block(self, block: int) -> None:
        rows = np.arange(block * self._block_rows, min((block + 1) * self._block_rows, len(self._is_start)))
        self._is_start[rows] = False
        self._set(rows, np.zeros(len(rows)))

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        left = rng.random(count) * self._levels[-1][0]
        nodes = np.zeros(count, np.int64)
        for level in reversed(self._levels[:-1]):
            children = nodes[:, None] * self.FANOUT + np.arange(self.FANOUT)
            until = np.cumsum(level[children], axis=1)
            # Rounding may leave a draw above the last sum: it belongs to the last child that has any weight.
            left = np.minimum(left, np.nextafter(until[:, -1], 0))
            pick = (until <= left[:, None]).sum(axis=1)
            left = left - np.where(pick > 0, until[np.arange(count), np.maximum(pick - 1, 0)], 0.0)
            nodes = children[np.arange(count), pick]
        return nodes

    def prioritize(self, rows: np.ndarray, priorities: np.ndarray) -> None:
        """Rows that no longer start a sequence are skipped. NaN and infinity count as the highest priority."""
        priorities = priorities.astype(np.float64)
        weights = np.maximum(priorities, 1e-6) ** self._exponent
        weights[~np.isfinite(priorities)] = self._highest
        known = self._is_start[rows]
        if known.any():
            self._highest = max(self._highest, float(weights[known].max()))
            self._set(rows[known], weights[known])

    def _set(self, rows: np.ndarray, weights: np.ndarray) -> None:
        self._levels[0][rows] = weights
        for below, level in zip(self._levels, self._levels[1:], strict=False):
            rows = np.unique(rows // self.FANOUT)
            level[rows] = below[rows[:, None] * self.FANOUT + np.arange(self.FANOUT)].sum(axis=1)


class Recent:
    """A start with chance in inverse proportion to its age: among n, half of the draws are the newest sqrt(n).

    Starts are kept in a ring, in insertion order. Removed starts leave holes; a draw that hits a hole is repeated.
    """

    def __init__(self, capacity: int, block_rows: int) -> None:
        self._block_rows = block_rows
        self._ring = np.zeros(capacity, np.int64)  # place -> row
        self._places = np.full(capacity, -1, np.int64)  # row -> its last place, never reused
        self._oldest, self._newest = 0, 0  # places that may still be valid: oldest … newest - 1

    def add(self, rows: np.ndarray) -> None:
        places = self._newest + np.arange(len(rows))
        self._ring[places % len(self._ring)] = rows
        self._places[rows] = places
        self._newest += len(rows)
        self._oldest = max(self._oldest, self._newest - len(self._ring))

    def drop_block(self, block: int) -> None:
        self._places[block * self._block_rows : (block + 1) * self._block_rows] = -1
        while self._oldest < self._newest and not self._are_good(np.asarray([self._oldest]))[0]:
            self._oldest += 1

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        drawn = np.zeros(0, np.int64)
        while len(drawn) < count:
            places = self._pick(count - len(drawn), rng)
            drawn = np.concatenate([drawn, self._ring[places[self._are_good(places)] % len(self._ring)]])
        return drawn

    def prioritize(self, rows: np.ndarray, priorities: np.ndarray) -> None:
        pass

    def _pick(self, count: int, rng: np.random.Generator) -> np.ndarray:
        known = self._newest - self._oldest
        ages = np.floor((known + 1) ** rng.random(count)).astype(np.int64)  # 1 … known, log-uniform
        return self._newest - np.clip(ages, 1, known)

    def _are_good(self, places: np.ndarray) -> np.ndarray:
        good: np.ndarray = self._places[self._ring[places % len(self._ring)]] == places
        return good


class Mixture:
    """Each draw from one of several selectors, by share."""

    def __init__(self, parts: list[Selector], shares: list[float]) -> None:
        self._parts = parts
        self._shares = np.asarray(shares, np.float64) / np.sum(shares)

    def add(self, rows: np.ndarray) -> None:
        for part in self._parts:
            part.add(rows)

    def drop_block(self, block: int) -> None:
        for part in self._parts:
            part.drop_block(block)

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        counts = rng.multinomial(count, self._shares)
        drawn = [part.draw(n, rng) for part, n in zip(self._parts, counts, strict=True) if n]
        return rng.permutation(np.concatenate(drawn))

    def prioritize(self, rows: np.ndarray, priorities: np.ndarray) -> None:
        for part in self._parts:
            part.prioritize(rows, priorities)


def _empty_tree(leaves: int, fanout: int) -> list[np.ndarray]:
    """Levels from the leaves to the root; each padded to whole families."""
    levels = [np.zeros(-(-leaves // fanout) * fanout)]
    while len(levels[-1]) > fanout:
        parents = len(levels[-1]) // fanout
        levels.append(np.zeros(-(-parents // fanout) * fanout))
    return [*levels, np.zeros(1)]
