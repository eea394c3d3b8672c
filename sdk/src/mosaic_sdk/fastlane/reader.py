"""The reading end of a lane. The writer works only while there is one."""

import time
from typing import Any, NamedTuple, Optional

from mosaic_sdk.fastlane.control import CLOSED, GENERATION, OPEN, STATE, ControlPage, create_fastlane_name, lane_name
from mosaic_sdk.fastlane.ring import FastLaneConfig, FastLaneMetrics, RingFile

LEASE_S = 2.0
_PATIENCE_NS = 1_000_000_000  # how long a frame from before attach() is held back


class Frame(NamedTuple):
    """One frame, the reader's own copy."""

    pixels: Any  # uint8 array, height × width × channels
    metrics: FastLaneMetrics
    number: int  # increases with each frame of one generation
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
    3. What a reader stores, its lease and its mark on a slot, expires. Nothing else that it does, and no way in which
       it ends, changes the writer's files.
    4. If another program damages or truncates the files, the reader gets no frames, but does not crash.
    """

    def __init__(self, page: ControlPage, lease_s: float = LEASE_S) -> None:
        self._page = page
        self._lease_ns = int(lease_s * 1e9)
        self._ring: Optional[RingFile] = None
        self._generation = 0
        self._last: Optional[Frame] = None
        self._since_ns = time.monotonic_ns()
        self._given = (0, 0)  # number and when_ns of the last fresh_frame()
        self._given_from: Optional[RingFile] = None
        self.renew()

    @classmethod
    def attach(cls, run_id: str, lease_s: float = LEASE_S, lane: Optional[int] = None) -> "FastLaneReader":
        """Watch a run, or one lane (0, 1 …) of an evaluation; FileNotFoundError if it has no FastLane (no env was
        created yet, or the run is over)."""
        return cls.of_lane(create_fastlane_name(run_id) if lane is None else lane_name(run_id, lane), lease_s)

    @classmethod
    def of_lane(cls, lane: str, lease_s: float = LEASE_S) -> "FastLaneReader":
        return cls(ControlPage.open(lane), lease_s)

    @property
    def cost_ns(self) -> int:
        """CPU time that a frame takes from its env, render and copy; 0 if unknown."""
        return self._ring.cost_ns if self._ring else 0

    @property
    def is_current(self) -> bool:
        """Whether the lane's name still refers to it. Not after its end, and for a moment not after a logout."""
        return self._page.is_current

    @property
    def is_over(self) -> bool:
        """Whether the writer announced that no frame will follow, and no other writer has replaced it."""
        return self._page.words[STATE] == CLOSED and not self._page.is_current

    def renew(self) -> None:
        """Extend the lease without reading a frame."""
        self._page.renew_lease(time.monotonic_ns() + self._lease_ns)

    def latest_frame(self) -> Optional[Frame]:
        """The newest frame, the same again if none followed; None before the first."""
        if self._page.words[STATE] != OPEN:
            self._follow_page()
        self.renew()
        if self._page.words[GENERATION] != self._generation:
            self._follow_generation()
        taken = self._ring.take() if self._ring else None
        if taken and self._ring:
            self._last = Frame(taken.pixels, taken.metrics, taken.number, taken.when_ns, self._ring.config)
        return self._last

    def fresh_frame(self) -> Optional[Frame]:
        """The newest frame, if it was not returned before; else None.

        A frame from before attach() may be hours old: it is returned only if no newer one arrives within a second.
        """
        if self._is_unchanged:
            self.renew()
            return None
        frame = self.latest_frame()
        if frame is None or (frame.number, frame.when_ns) == self._given:
            return None
        if frame.when_ns < self._since_ns and time.monotonic_ns() < self._since_ns + _PATIENCE_NS:
            return None
        self._given = frame.number, frame.when_ns
        self._given_from = self._ring
        return frame

    @property
    def _is_unchanged(self) -> bool:
        """Whether the frame that was returned last is still the newest: then no pixels are copied."""
        words, ring = self._page.words, self._given_from
        if ring is None or ring is not self._ring or ring.newest != self._given[0]:
            return False
        return words[STATE] == OPEN and words[GENERATION] == self._generation

    def close(self) -> None:
        """Stop watching. The lease expires later: other readers may need it."""
        if self._ring:
            self._ring.close()
        self._ring = self._given_from = None
        self._page.forget()

    def _follow_page(self) -> None:
        try:
            fresh = ControlPage.open(self._page.lane)
        except OSError:
            return  # not recreated yet, or over, or another user's
        self._page.forget()
        self._page = fresh
        self._generation = 0  # a new page counts from the beginning, so its first frames may have the same numbers

    def _follow_generation(self) -> None:
        generation = self._page.words[GENERATION]
        try:
            fresh = RingFile.open(self._page.lane, generation)
        except OSError:
            return  # already replaced or removed: the frame that we have is still good
        if self._ring:
            self._ring.close()
        self._ring, self._generation = fresh, generation
