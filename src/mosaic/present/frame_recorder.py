"""Records a clip: frames are given in one thread and reduced in another, so that the giver never waits."""

import queue
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mosaic_sdk.fastlane.scale import shrink

from mosaic.present.frame_files import CLIP_MAX_DIM, Clip

if TYPE_CHECKING:
    from mosaic.client import Frame

SECONDS = 10.0
HZ = 15.0
MOST_WAITING = 60  # frames; a machine that cannot keep up drops some, and its memory stays bounded
PATIENCE_S = 30.0  # a recording that is never ended ends by itself


class ClipRecorder:
    """1. `add` and `end` return at once. 2. `reduce` returns when the recording has ended, however that happens."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        # The clip's clock is that of the frames: reducing them may lag behind.
        self._clip = Clip(seconds, clock=lambda: self._clock_ns)
        self._clock_ns = 0
        self._waiting: queue.Queue[Frame | None] = queue.Queue(MOST_WAITING + 1)
        self._last_ns = 0
        self._first_ns = 0
        self._is_ended = False
        self._ended_ns = 0

    @property
    def filmed_s(self) -> float:
        return min(self.seconds, (self._last_ns - self._first_ns) / 1e9)

    @property
    def is_full(self) -> bool:
        return self.filmed_s >= self.seconds

    def add(self, frame: "Frame") -> None:
        """Take a frame, unless the one before is too recent."""
        self._first_ns = self._first_ns or frame.when_ns
        is_due = frame.when_ns - self._last_ns >= 0.9e9 / HZ  # frames come a little early or late
        if is_due and not self._is_ended and self._waiting.qsize() < MOST_WAITING:
            self._last_ns = frame.when_ns
            self._waiting.put_nowait(frame)

    def end(self) -> None:
        if not self._is_ended:
            self._is_ended, self._ended_ns = True, time.monotonic_ns()
            self._waiting.put_nowait(None)

    def reduce(self) -> Clip:
        """Reduce the frames to 256 colours as they come; the clip, when the recording has ended."""
        while (frame := self._next()) is not None:
            self._clock_ns = frame.when_ns
            self._clip.add(replace(frame, pixels=shrink(frame.pixels, CLIP_MAX_DIM)))
        self._clock_ns = max(self._clock_ns, self._ended_ns)
        self._clip.end()
        return self._clip

    def _next(self) -> "Frame | None":
        try:
            return self._waiting.get(timeout=PATIENCE_S)
        except queue.Empty:
            self._is_ended = True
            return None
