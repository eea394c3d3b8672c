"""Reads the newest frame of a lane in this machine's shared memory, as a message: for the daemon, and for nodes."""

import time
from typing import TYPE_CHECKING

from mosaic.wire import mosaic_pb2 as pb

if TYPE_CHECKING:
    from mosaic_sdk.fastlane import FastLaneReader


class FrameWatcher:
    """One viewer's view of a lane. Garbage collection closes its descriptors: when a client disconnects, a thread may
    still be reading."""

    def __init__(self, reader: "FastLaneReader", max_dim: int) -> None:
        self._reader = reader
        self._max_dim = max_dim

    @classmethod
    def attach(cls, run_id: str, lease_s: float, max_dim: int, lane: int | None = None) -> "FrameWatcher":
        from mosaic_sdk.fastlane import FastLaneReader  # imports numpy: only when frames are requested

        return cls(FastLaneReader.attach(run_id, lease_s, lane), max_dim)

    def look(self) -> pb.Frame | None:
        """The newest frame, encoded; None if it has already been sent."""
        from mosaic_sdk.fastlane.scale import shrink

        from mosaic.wire import png

        frame = self._reader.fresh_frame()
        if frame is None:
            return None
        return pb.Frame(
            png=png.encode(shrink(frame.pixels, self._max_dim)),
            number=frame.number,
            age_ns=max(0, time.monotonic_ns() - frame.when_ns),
            last_reward=frame.metrics.last_reward,
            rolling_return=frame.metrics.rolling_return,
            step_rate_hz=frame.metrics.step_rate_hz,
            cost_ns=self._reader.cost_ns,
        )
