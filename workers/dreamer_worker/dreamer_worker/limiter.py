"""The ratio of replayed to played steps: inserts or samples that are ahead wait, asleep, for the other side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Closed(Exception):
    """The run ends: stop waiting."""


class SamplesPerInsert:
    """Keeps sampled sequences per inserted step at `samples_per_insert`. Its promises:

    1. Nothing is sampled before `min_inserts` steps are inserted; then sampling starts at once.
    2. Afterwards inserts are at most `tolerance` steps ahead of the ratio, samples at most `tolerance` sequences.
    3. A waiting caller sleeps and holds no lock that another one needs.

    A ratio of 0 or less limits nothing after the minimum.
    """

    def __init__(
        self,
        samples_per_insert: float,
        tolerance: float,
        min_inserts: int,
        is_ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self.samples_per_insert = samples_per_insert
        self.tolerance = tolerance
        self.min_inserts = min_inserts
        self.is_ready = is_ready  # whether there is anything to sample at all
        self.inserts = 0
        self.samples = 0
        self.available = 0.0  # sequences that may be sampled before the ratio is exceeded
        self._changed = threading.Condition()
        self._is_closed = False
        self._is_open_to_inserts = False

    def insert(self, count: int = 1, timeout_s: float | None = None) -> bool:
        """Wait until steps may be inserted and count them; False after the timeout."""
        with self._changed:
            if not self._wait(self._may_insert, timeout_s):
                return False
        self.note_inserts(count)
        return True

    def note_inserts(self, count: int) -> None:
        """Count inserted steps; also wakes callers that wait for the first sequence."""
        with self._changed:
            before = max(self.inserts, self.min_inserts)
            self.inserts += count
            # Only steps above the minimum count: the minimum is a head start for the learner.
            self.available += self.samples_per_insert * max(0, self.inserts - before)
            self._changed.notify_all()

    def sample(self, count: int = 1, timeout_s: float | None = None) -> bool:
        """Wait until sequences may be sampled and count them; False after the timeout."""
        with self._changed:
            if not self._wait(self._may_sample, timeout_s):
                return False
            self.samples += count
            self.available -= count
            self._changed.notify_all()
            return True

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    @contextmanager
    def open_to_inserts(self) -> Iterator[None]:
        """Admit inserts regardless of the ratio, while a checkpoint waits for the last of them."""
        with self._changed:
            self._is_open_to_inserts = True
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._is_open_to_inserts = False

    def save(self) -> dict[str, float]:
        with self._changed:
            return {"inserts": self.inserts, "samples": self.samples, "available": self.available}

    def load(self, state: dict[str, float]) -> None:
        with self._changed:
            self.inserts, self.samples = int(state["inserts"]), int(state["samples"])
            self.available = float(state["available"])
            self._changed.notify_all()

    def stats(self) -> dict[str, float]:
        ratio = self.samples / max(1, self.inserts - self.min_inserts)
        return {**self.save(), "samples_per_insert": ratio if self.inserts > self.min_inserts else 0.0}

    def _wait(self, allowed: Callable[[], bool], timeout_s: float | None) -> bool:
        met = self._changed.wait_for(lambda: self._is_closed or allowed(), timeout_s)
        if self._is_closed:
            raise Closed
        return met

    def _may_insert(self) -> bool:
        if self.inserts < self.min_inserts or self.samples_per_insert <= 0 or self._is_open_to_inserts:
            return True
        if not self.is_ready():
            return True  # the learner needs these steps before it can catch up
        return self.available < self.tolerance * self.samples_per_insert

    def _may_sample(self) -> bool:
        if self.inserts < self.min_inserts or not self.is_ready():
            return False
        return self.samples_per_insert <= 0 or self.available > -self.tolerance
