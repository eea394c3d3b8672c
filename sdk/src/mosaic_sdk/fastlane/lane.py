"""One env's way to its viewers: whether a frame is wanted, what is shown beside it, and how it is shown."""

import sys
import time
from typing import Any, Callable, Optional

import numpy as np

from mosaic_sdk.fastlane.control import LEASE
from mosaic_sdk.fastlane.grid import Grid, claim_tile
from mosaic_sdk.fastlane.ring import FastLaneMetrics, config_of
from mosaic_sdk.fastlane.scale import shrink
from mosaic_sdk.fastlane.settings import Settings
from mosaic_sdk.fastlane.writer import FastLaneWriter
from mosaic_sdk.names import VideoModes

_SMOOTHING = 0.1  # weight of the newest episode in rolling_return
_RATE_NS = 1_000_000_000  # over how long the step rate is measured
_TROUBLE_NS = 5_000_000_000  # how long a full /dev/shm is left alone


class Lane:
    """Its promises:

    1. Lease, then throttle, are asked before a frame is rendered; and not at every step, but after as many as pass in a
       small part of the interval, never more than 16.
    2. A full /dev/shm is told once and tried again now and then; the training does not notice.

    The wrapper keeps `steps` and `return_so_far` itself: a call would cost more than the counting.
    """

    def __init__(self, writer: FastLaneWriter, settings: Settings, grid: Optional[Grid] = None) -> None:
        self.page = writer.page
        self.past = -1  # the lease that we saw pass, see FastLaneWriter
        self.steps = 0
        self.next_look = 0  # the step that asks again
        self.return_so_far: Any = 0.0
        self._rolling_return: Optional[float] = None
        self._writer = writer
        self._grid = grid
        self._max_dim = settings.max_dim
        self._interval_ns = int(settings.interval_ms * 1e6)
        self._next_ns = 0
        self._looked = (0, 0)  # when, and at which step
        self._rate_hz = 0.0
        self._rate_since_ns, self._rate_steps = time.monotonic_ns(), 0
        self._next_mend_ns = 0
        self._is_troubled = False

    @classmethod
    def open(cls, settings: Settings, place: int) -> "Optional[Lane]":
        """The lane of the run's env number `place`, which is to be seen; None when other envs have taken all."""
        is_grid = settings.mode == VideoModes.GRID
        if not is_grid or place == 0:
            try:
                writer = FastLaneWriter.create(settings.run_id)
                return cls(writer, settings, Grid(settings.run_id, settings.grid_limit) if is_grid else None)
            except FileExistsError:
                pass  # an env of another process
        tile = claim_tile(settings.run_id, max(1, place), settings.grid_limit) if is_grid else None
        return cls(tile, settings) if tile else None

    def look(self, render: Callable[[], Any], reward: Any) -> None:
        """Render and show a frame if one is wanted now."""
        until = self.page.words[LEASE]
        if self._interval_ns:
            self._plan_next_look()
        if until == self.past:
            return
        now = time.monotonic_ns()
        if until <= now:
            self.past = until
        elif now >= self._next_ns:
            self._next_ns = now + self._interval_ns
            self._show(render(), reward, now)

    def _plan_next_look(self) -> None:
        now = time.monotonic_ns()
        when, step = self._looked
        ns_per_step = (now - when) / max(1, self.steps - step)
        patience = int(self._interval_ns / 32 / max(1.0, ns_per_step))
        self.next_look = self.steps + max(1, min(16, patience))
        self._looked = (now, self.steps)

    def end_episode(self) -> None:
        last = float(self.return_so_far)
        before = last if self._rolling_return is None else self._rolling_return
        self._rolling_return = before + _SMOOTHING * (last - before)
        self.return_so_far = 0.0

    def start_episode(self) -> None:
        self.return_so_far = 0.0
        now = time.monotonic_ns()
        if now >= self._next_mend_ns:
            self._next_mend_ns = now + _RATE_NS
            self._writer.mend()

    def close(self) -> None:
        if self._grid:
            self._grid.close()
        self._writer.close()
        try:
            self._writer.unlink()
        except FileNotFoundError:
            pass  # somebody was faster

    def _show(self, frame: Any, reward: Any, now: int) -> None:
        pixels = shrink(as_image(frame), self._max_dim)
        try:
            picture = self._grid.compose(pixels) if self._grid else pixels
            self._writer.reshape(config_of(picture))
            self._writer.publish(picture, self._metrics(reward, now))
            self._is_troubled = False
        except OSError as error:
            self._next_ns = now + _TROUBLE_NS
            if not self._is_troubled:
                note(f"frames cannot be shown for now: {error}")
            self._is_troubled = True

    def _metrics(self, reward: Any, now: int) -> FastLaneMetrics:
        if now - self._rate_since_ns >= _RATE_NS or not self._rate_hz:
            self._rate_hz = (self.steps - self._rate_steps) * 1e9 / max(1, now - self._rate_since_ns)
            self._rate_since_ns, self._rate_steps = now, self.steps
        # Before the first episode has ended, its return so far is the best there is.
        rolling = self.return_so_far if self._rolling_return is None else self._rolling_return
        return FastLaneMetrics(float(reward), float(rolling), self._rate_hz)


def as_image(frame: Any) -> Any:
    """What render() gave, as height × width × channels of bytes."""
    if frame is None:
        raise ValueError("render() gave no picture")
    pixels = np.asarray(frame)
    if pixels.dtype != np.uint8:
        pixels = pixels.astype(np.uint8)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def note(text: str) -> None:
    """A word to whoever reads the run's log; a training is never stopped for a picture."""
    try:
        print(f"mosaic: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass  # no stderr
