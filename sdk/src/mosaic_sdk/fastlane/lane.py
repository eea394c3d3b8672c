"""One env's way to its viewers: whether a frame is wanted, what is shown beside it, and how it is shown."""

import sys
import time
from typing import Any, Callable, Optional, Tuple

import numpy as np

from mosaic_sdk.fastlane.control import LEASE
from mosaic_sdk.fastlane.grid import Grid, claim_tile
from mosaic_sdk.fastlane.ring import Ring, config_of
from mosaic_sdk.fastlane.scale import shrink
from mosaic_sdk.fastlane.settings import Settings
from mosaic_sdk.fastlane.writer import FastLaneWriter
from mosaic_sdk.names import VideoModes

_monotonic, _monotonic_ns = time.monotonic, time.monotonic_ns
_SMOOTHING = 0.1  # weight of the newest episode in rolling_return
_RATE_NS = 1_000_000_000  # over how long the step rate is measured
_MEND_S = 1.0  # between two looks whether our names are still there
_TROUBLE_NS = 5_000_000_000  # how long a full /dev/shm is left alone
_CLOSE_LOOK_NS = 250_000_000  # between two frames that are measured, and whose shape is asked for
_COST_WEIGHT = 0.3  # of the newest one in what a frame is said to cost


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
        self._stride = 1  # steps between two looks
        self._patience_s = settings.interval_ms / 32_000  # time between them
        self._plan_s, self._next_plan_s = min(_MEND_S, settings.interval_ms / 1000), 0.0
        self._planned_s, self._planned_step = 0.0, 0
        self._rate_hz = 0.0
        self._rate_since_ns, self._rate_steps = _monotonic_ns(), 0
        self._next_mend_s = 0.0
        self._is_troubled = False
        self._ring: Optional[Ring] = None  # for frames that are shown as they come
        self._next_close_look_ns = 0
        self._cost_ns = 0.0  # CPU that a frame takes, smoothed

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
        now_s = _monotonic()
        if now_s >= self._next_plan_s:
            self._plan(now_s)
        self.next_look = self.steps + self._stride
        until = self.page.words[LEASE]
        if until != self.past:
            self._look_again(until, render, reward)

    def _plan(self, now_s: float) -> None:
        """What need not be done at every look: how many steps lie between two of them, judged by the last interval."""
        patience = (self.steps - self._planned_step) * self._patience_s / max(1e-9, now_s - self._planned_s)
        self._stride = min(16, max(1, int(patience)))
        self._planned_s, self._planned_step = now_s, self.steps
        self._next_plan_s = now_s + self._plan_s
        if now_s >= self._next_mend_s:
            self._next_mend_s = now_s + _MEND_S
            self._mend()

    def _look_again(self, until: int, render: Callable[[], Any], reward: Any) -> None:
        now = _monotonic_ns()
        if until <= now:
            self.past = until
        elif now >= self._next_ns:
            # In step with the interval, so that slow steps do not make fewer frames; but no hurry after a pause.
            late = now - self._next_ns
            self._next_ns = now + self._interval_ns - (late if late < self._interval_ns else 0)
            if now >= self._next_close_look_ns:
                self._look_closely(render, reward, now)
            else:
                self._show(render(), reward, now)

    def end_episode(self) -> None:
        last = float(self.return_so_far)
        before = last if self._rolling_return is None else self._rolling_return
        self._rolling_return = before + _SMOOTHING * (last - before)
        self.return_so_far = 0.0

    def start_episode(self, render: Callable[[], Any]) -> None:
        """Its first picture, if somebody watches."""
        self.return_so_far = 0.0
        if self.page.words[LEASE] != self.past:
            self.look(render, 0.0)

    def close(self) -> None:
        if self._grid:
            self._grid.close()
        self._writer.close()
        try:
            self._writer.unlink()
        except FileNotFoundError:
            pass  # somebody was faster

    def _mend(self) -> None:
        self._writer.mend()
        if self._ring is not self._writer.ring:
            self._ring = None

    def _look_closely(self, render: Callable[[], Any], reward: Any, now: int) -> None:
        """Show a frame that is measured, and whose shape is asked for."""
        self._next_close_look_ns = now + _CLOSE_LOOK_NS
        start = time.thread_time_ns()
        frame = render()
        if self._ring is not None and np.shape(frame) != self._ring.shape:
            self._ring = None
        self._measure_rate(now)
        self._show(frame, reward, now)
        ns = time.thread_time_ns() - start
        before = self._cost_ns or ns
        self._cost_ns = before + _COST_WEIGHT * (ns - before)
        self._writer.tell_cost(int(self._cost_ns))

    def _show(self, frame: Any, reward: Any, now: int) -> None:
        """Show a frame that is most likely like the one before.

        After thirty milliseconds of training all of this is cold and takes ten times as long as in a loop: nothing is
        asked, not even the shape (three microseconds), because numpy refuses another one. What it does not refuse, a
        picture one pixel high or wide in place of a larger one, is found by the next close look.
        """
        rolling = self._rolling_return
        if rolling is None:
            rolling = self.return_so_far  # before the first episode has ended, the best there is
        try:
            if self._ring is not None:
                self._ring.put(frame, (reward, rolling, self._rate_hz), now, True)
                return
        except (ValueError, TypeError):
            pass
        self._show_another(frame, (float(reward), float(rolling), self._rate_hz), now)

    def _show_another(self, frame: Any, metrics: Tuple[float, float, float], now: int) -> None:
        """The same for a frame of any kind."""
        try:
            picture = self._prepare(frame)
            self._writer.put(picture, metrics, now)
            self._ring = self._writer.ring if picture is frame else None
            self._is_troubled = False
        except OSError as error:
            self._next_ns = now + _TROUBLE_NS
            if not self._is_troubled:
                note(f"frames cannot be shown for now: {error}")
            self._is_troubled = True

    def _prepare(self, frame: Any) -> Any:
        """The picture that is shown of a frame, and the writer ready for its shape."""
        picture = shrink(as_image(frame), self._max_dim)
        if self._grid:
            picture = self._grid.compose(picture)
        self._writer.reshape(config_of(picture))
        return picture

    def _measure_rate(self, now: int) -> None:
        if now - self._rate_since_ns >= _RATE_NS or not self._rate_hz:
            self._rate_hz = (self.steps - self._rate_steps) * 1e9 / max(1, now - self._rate_since_ns)
            self._rate_since_ns, self._rate_steps = now, self.steps


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
