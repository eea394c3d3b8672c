"""The writing end of a lane."""

import os
import time
from typing import Any, Optional, Tuple

from mosaic_sdk.fastlane.control import LEASE, PREFIX, ControlPage, create_fastlane_name
from mosaic_sdk.fastlane.ring import COST, FastLaneConfig, FastLaneMetrics, Ring, config_of

_monotonic_ns = time.monotonic_ns
_CHECK_NS = 1_000_000_000  # while watched, how often to check that our files still exist
NO_METRICS = FastLaneMetrics()


class FastLaneWriter:
    """Publishes one run's frames. Its promises:

    1. While no one watches nothing is copied, and no memory is allocated for frames before someone does.
    2. A reader sees whole frames, each with its own metrics.
    3. A new geometry is a new generation; the readers follow.
    4. Files that another program removed or damaged are recreated while someone watches.
    5. After unlink(), exit or SIGTERM nothing is left in /dev/shm.
    """

    def __init__(self, shm: Any, config: FastLaneConfig) -> None:
        """A writer for the page that a `SharedMemory` names, as in workers of the public MOSAIC; it must be free."""
        self._start(ControlPage.claim(_lane_of(shm)), config)

    @classmethod
    def create(cls, run_id: str, config: Optional[FastLaneConfig] = None) -> "FastLaneWriter":
        """The writer of a run; FileExistsError while another lives. Without a config, the first frame determines it."""
        return cls.of_lane(create_fastlane_name(run_id), config)

    @classmethod
    def of_lane(cls, lane: str, config: Optional[FastLaneConfig] = None) -> "FastLaneWriter":
        writer = cls.__new__(cls)
        writer._start(ControlPage.claim(lane), config)
        return writer

    def _start(self, page: ControlPage, config: Optional[FastLaneConfig]) -> None:
        self.page = page
        self.config = config
        # The last expired lease: while the page still has it, there is no need to read the clock.
        self.past = 0
        self.ring: Optional[Ring] = None  # takes the next frame; None if that is the first of a ring
        self._shown: Optional[Ring] = None  # the one that was announced to readers
        self._next_check_ns = 0

    @property
    def is_watched(self) -> bool:
        """Whether a reader requests frames now; check it before rendering one."""
        until = self.page.words[LEASE]
        if until == self.past:
            return False
        if until > _monotonic_ns():
            return True
        self.past = until
        return False

    def publish(self, frame: Any, metrics: Tuple[float, float, float] = NO_METRICS) -> bool:
        """Show a frame, bytes or array, if someone watches; returns whether it was copied."""
        until = self.page.words[LEASE]
        if until == self.past:
            return False
        now = _monotonic_ns()
        if until <= now:
            self.past = until
            return False
        if now >= self._next_check_ns:
            self._next_check_ns = now + _CHECK_NS
            self.repair()
        if self.ring is not None:  # as in put(); the call would cost a twentieth of a small copy
            self.ring.put(frame, metrics, now)
        else:
            self._put_first(frame, metrics, now)
        return True

    def put(self, frame: Any, metrics: Tuple[float, float, float], now: int) -> None:
        """The same for a caller that checks the lease and calls repair() itself."""
        if self.ring is not None:
            self.ring.put(frame, metrics, now)
        else:
            self._put_first(frame, metrics, now)

    def reshape(self, config: FastLaneConfig) -> None:
        """Use this geometry from the next frame on."""
        if config != self.config:
            self.config = config
            self.ring = None

    def repair(self) -> None:
        """Recreate files that another program removed; FileExistsError if another writer has the name now."""
        self.page.repair()
        if self.ring and not self.ring.is_current:
            self.ring = None

    def report_cost(self, ns: int) -> None:
        """Publish how much CPU time a frame takes from its env."""
        if self.ring:
            self.ring.header[COST] = ns

    def close(self) -> None:
        """No frame will follow."""
        self.ring = self._shown = None
        self.page.close()

    def unlink(self) -> None:
        """Remove the lane from /dev/shm; FileNotFoundError if it is gone."""
        self.page.unlink()

    def _put_first(self, frame: Any, metrics: Tuple[float, float, float], now: int) -> None:
        """Write the first frame of a ring, then announce the ring."""
        config = self.config = self.config or config_of(frame)
        generation = self.page.generation + 1
        ring = Ring.create(self.page.lane, generation, config)
        try:
            ring.put(frame, metrics, now)
        except BaseException:
            ring.unlink()
            raise
        # Only now, so that readers find a frame.
        self.page.point_to(generation, config.shape)
        if self._shown:
            self._shown.unlink()
        self.ring = self._shown = ring


def _lane_of(shm: Any) -> str:
    name = os.path.basename(str(shm.name))
    if not name.startswith(PREFIX):
        raise ValueError(f"The shared memory {name!r} is not a FastLane. Name it with create_fastlane_name(run_id).")
    return create_fastlane_name(name[len(PREFIX) :])
