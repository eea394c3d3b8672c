"""Every frame of one lane, for clips: the recorder holds the lane's lease, and is asked after each step.

    recorder = LaneRecorder(run_id, lane=0)         # before the lane's first reset, so that its first frame is rendered
    reset_lane(); frames = [recorder.frame()]
    while playing:
        step_lane(); frames.append(recorder.frame())
    recorder.close()

A worker publishes a frame within its step, so the newest one after the answer is that step's. It must not be throttled:
start the lane with CLEANRL_FASTLANE_INTERVAL_MS=0.
"""

import time
from typing import Any, Optional

from mosaic_sdk.fastlane.control import LEASE, ControlPage, lane_name
from mosaic_sdk.fastlane.reader import LEASE_S, FastLaneReader

PATIENCE_S = 600.0  # how long a lane may take until its next frame: libraries are imported, an LLM thinks


class LaneRecorder:
    """Watches one lane until close()."""

    def __init__(self, run_id: str, lane: int, lease_s: float = PATIENCE_S) -> None:
        name = lane_name(run_id, lane)
        ControlPage.prepare(name, time.monotonic_ns() + int(lease_s * 1e9))
        self._page = ControlPage.open(name)
        self._reader = FastLaneReader.of_lane(name, lease_s)
        self._seen = (0, 0)

    def frame(self) -> Optional[Any]:
        """The pixels (height × width × channels) of the newest frame; None if there was none since the last call."""
        frame = self._reader.latest_frame()
        if frame is None or (frame.number, frame.when_ns) == self._seen:
            return None
        self._seen = frame.number, frame.when_ns
        return frame.pixels

    def close(self) -> None:
        """Stop watching, and let the lane stop rendering soon, unless it has other viewers."""
        self._reader.close()
        # Other viewers store a shorter lease only once this long one is gone, and they do so many times a second.
        self._page.words[LEASE] = time.monotonic_ns() + int(LEASE_S * 1e9)
        self._page.forget()
