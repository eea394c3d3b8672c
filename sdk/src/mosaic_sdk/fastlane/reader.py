"""The watching end of a lane: its existence is what makes the writer work."""

import time
from typing import Any, NamedTuple, Optional

from mosaic_sdk.fastlane.control import CLOSED, GENERATION, OPEN, STATE, ControlPage, create_fastlane_name
from mosaic_sdk.fastlane.ring import FastLaneConfig, FastLaneMetrics, Ring

LEASE_S = 2.0


class Frame(NamedTuple):
    """One frame, the reader's own copy."""

    pixels: Any  # uint8 array, height × width × channels
    metrics: FastLaneMetrics
    number: int  # counts the writer's frames, within one generation
    when_ns: int  # CLOCK_MONOTONIC
    config: FastLaneConfig

    @property
    def width(self) -> int:
        return self.config.width

    @property
    def height(self) -> int:
        return self.config.height

    @property
    def channels(self) -> int:
        return self.config.channels

    @property
    def data(self) -> bytes:
        return bytes(self.pixels)


class FastLaneReader:
    """Watches one lane. Its promises:

    1. The lane is watched from attach() until `lease_s` after the last latest_frame(); then it costs nothing again.
    2. latest_frame() is whole, never older than the one before, and after the first never None.
    3. Nothing that a reader does or how it dies changes the writer's files.
    """

    def __init__(self, page: ControlPage, lease_s: float = LEASE_S) -> None:
        self._page = page
        self._lease_ns = int(lease_s * 1e9)
        self._ring: Optional[Ring] = None
        self._generation = 0
        self._last: Optional[Frame] = None
        self.renew()

    @classmethod
    def attach(cls, run_id: str, lease_s: float = LEASE_S) -> "FastLaneReader":
        """Watch a run; FileNotFoundError when it has no FastLane (no env was made yet, or the run is over)."""
        return cls.of_lane(create_fastlane_name(run_id), lease_s)

    @classmethod
    def of_lane(cls, lane: str, lease_s: float = LEASE_S) -> "FastLaneReader":
        return cls(ControlPage.open(lane), lease_s)

    @property
    def is_over(self) -> bool:
        """Whether the writer said that no frame will follow, and none has taken its place."""
        return self._page.words[STATE] == CLOSED and not self._page.is_current

    def renew(self) -> None:
        """Keep the lane watched without looking."""
        self._page.renew_lease(time.monotonic_ns() + self._lease_ns)

    def latest_frame(self) -> Optional[Frame]:
        """The newest frame there is, the same again if none followed; None before the first."""
        if self._page.words[STATE] != OPEN:
            self._follow_page()
        self.renew()
        if self._page.words[GENERATION] != self._generation:
            self._follow_generation()
        taken = self._ring.take() if self._ring else None
        if taken and self._ring:
            self._last = Frame(taken.pixels, taken.metrics, taken.number, taken.when_ns, self._ring.config)
        return self._last

    def close(self) -> None:
        """Stop watching. The lease ends by itself: others may hold it too."""
        self._ring = None
        self._page.forget()

    def _follow_page(self) -> None:
        try:
            fresh = ControlPage.open(self._page.lane)
        except FileNotFoundError:
            return  # not made again yet, or over
        self._page.forget()
        self._page = fresh

    def _follow_generation(self) -> None:
        generation = self._page.words[GENERATION]
        try:
            self._ring = Ring.open(self._page.lane, generation)
            self._generation = generation
        except FileNotFoundError:
            pass  # already followed by another, or removed: what we have is still good
