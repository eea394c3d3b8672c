"""The writing end of a lane."""

import os
import time
from typing import Any, Optional, Tuple

from mosaic_sdk.fastlane.control import LEASE, PREFIX, ControlPage, create_fastlane_name
from mosaic_sdk.fastlane.ring import COST, FastLaneConfig, FastLaneMetrics, Ring, config_of

_monotonic_ns = time.monotonic_ns
_MEND_NS = 1_000_000_000  # while watched, this often: a look whether our names are still there
NO_METRICS = FastLaneMetrics()


class FastLaneWriter:
    """Publishes one run's frames. Its promises:

    1. While nobody watches nothing is copied, and the frames have no memory before somebody does.
    2. A reader sees whole frames, each with its own metrics.
    3. A new geometry is a new generation; the readers follow.
    4. Names that somebody removed or spoiled come back while somebody watches.
    5. After unlink(), exit or SIGTERM nothing is left in /dev/shm.
    """

    def __init__(self, shm: Any, config: FastLaneConfig) -> None:
        """A writer for the page that a `SharedMemory` of the guide names; it must be free."""
        self._start(ControlPage.claim(_lane_of(shm)), config)

    @classmethod
    def create(cls, run_id: str, config: Optional[FastLaneConfig] = None) -> "FastLaneWriter":
        """The writer of a run; FileExistsError while another lives. Without a config the first frame gives it."""
        return cls.of_lane(create_fastlane_name(run_id), config)

    @classmethod
    def of_lane(cls, lane: str, config: Optional[FastLaneConfig] = None) -> "FastLaneWriter":
        writer = cls.__new__(cls)
        writer._start(ControlPage.claim(lane), config)
        return writer

    def _start(self, page: ControlPage, config: Optional[FastLaneConfig]) -> None:
        self.page = page
        self.config = config
        # The last "watched until" that we saw pass: as long as it stands there, no clock needs to be read.
        self.past = 0
        self.ring: Optional[Ring] = None  # that takes the next frame; None when that is the first of a ring
        self._shown: Optional[Ring] = None  # that the readers were led to
        self._next_mend_ns = 0

    @property
    def is_watched(self) -> bool:
        """Whether a reader wants frames now; ask before rendering one."""
        until = self.page.words[LEASE]
        if until == self.past:
            return False
        if until > _monotonic_ns():
            return True
        self.past = until
        return False

    def publish(self, frame: Any, metrics: Tuple[float, float, float] = NO_METRICS) -> bool:
        """Show a frame, bytes or array, if somebody watches; says whether it was copied."""
        until = self.page.words[LEASE]
        if until == self.past:
            return False
        now = _monotonic_ns()
        if until <= now:
            self.past = until
            return False
        if now >= self._next_mend_ns:
            self._next_mend_ns = now + _MEND_NS
            self.mend()
        if self.ring is not None:  # as in put(), a call of which is a twentieth of a small copy
            self.ring.put(frame, metrics, now)
        else:
            self._put_first(frame, metrics, now)
        return True

    def put(self, frame: Any, metrics: Tuple[float, float, float], now: int) -> None:
        """The same for who asks for the lease, and after the names, by himself."""
        if self.ring is not None:
            self.ring.put(frame, metrics, now)
        else:
            self._put_first(frame, metrics, now)

    def reshape(self, config: FastLaneConfig) -> None:
        """From the next frame on, this geometry."""
        if config != self.config:
            self.config = config
            self.ring = None

    def mend(self) -> None:
        """Make again what somebody unlinked; FileExistsError when another writer has the name now."""
        self.page.mend()
        if self.ring and not self.ring.is_current:
            self.ring = None

    def tell_cost(self, ns: int) -> None:
        """Let the viewers know what a frame takes from its env."""
        if self.ring:
            self.ring.header[COST] = ns

    def close(self) -> None:
        """No frame will follow."""
        self.ring = self._shown = None
        self.page.close()

    def unlink(self) -> None:
        """Remove the lane from /dev/shm; FileNotFoundError when it is gone."""
        self.page.unlink()

    def _put_first(self, frame: Any, metrics: Tuple[float, float, float], now: int) -> None:
        """The first frame of a ring, and the way to it for the readers."""
        config = self.config = self.config or config_of(frame)
        generation = self.page.generation + 1
        ring = Ring.create(self.page.lane, generation, config)
        try:
            ring.put(frame, metrics, now)
        except BaseException:
            ring.unlink()
            raise
        # Only now, so that whoever follows finds a frame.
        self.page.point_to(generation, config.shape)
        if self._shown:
            self._shown.unlink()
        self.ring = self._shown = ring


def _lane_of(shm: Any) -> str:
    name = os.path.basename(str(shm.name))
    if not name.startswith(PREFIX):
        raise ValueError(f"The shared memory {name!r} is no FastLane. Take the name from create_fastlane_name(run_id).")
    return create_fastlane_name(name[len(PREFIX) :])
