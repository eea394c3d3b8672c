"""Shows the frames of one env: whether one is requested, with which metrics, and at which rate."""

import sys
import time
from typing import Any, Callable, Optional, Tuple

import numpy as np

from mosaic_sdk.fastlane.control import LEASE, tile_name
from mosaic_sdk.fastlane.grid import Grid, claim_tile
from mosaic_sdk.fastlane.ring import Ring, config_of
from mosaic_sdk.fastlane.scale import shrink
from mosaic_sdk.fastlane.settings import Settings
from mosaic_sdk.fastlane.writer import FastLaneWriter
from mosaic_sdk.names import VideoModes

_monotonic, _monotonic_ns = time.monotonic, time.monotonic_ns
_SMOOTHING = 0.1  # weight of the newest episode in rolling_return
_RATE_NS = 1_000_000_000  # the step rate is measured over this time
_CHECK_S = 1.0  # between checks that our files still exist
_RETRY_NS = 5_000_000_000  # after /dev/shm was full
_CLOSE_LOOK_NS = 250_000_000  # between frames that are measured and whose shape is checked
_PREPARED_S = 0.5  # more than ControlPage.prepare takes
_COST_WEIGHT = 0.3  # of the newest frame in the reported cost


class Lane:
    """The frames of one env. Its promises:

    1. The lease and then the throttle are checked before a frame is rendered; not at every step, but after as many as
       pass in a small part of the interval, at most 16.
    2. A full /dev/shm is reported once and retried every few seconds; the training does not notice.

    The wrapper updates `steps` and `return_so_far` directly: a call would cost more than the counting.
    """

    def __init__(self, writer: FastLaneWriter, settings: Settings, grid: Optional[Grid] = None) -> None:
        self.page = writer.page
        self.past = -1  # the last expired lease, see FastLaneWriter
        self.steps = 0
        self.next_look = 0  # the step of the next check
        self.return_so_far: Any = 0.0
        self._rolling_return: Optional[float] = None
        self._writer = writer
        self._grid = grid
        self._max_dim = settings.max_dim
        self._interval_ns = int(settings.interval_ms * 1e6)
        self._next_ns = 0
        self._stride = 1  # steps between checks
        self._patience_s = settings.interval_ms / 32_000  # time between checks
        self._plan_s, self._next_plan_s = min(_CHECK_S, settings.interval_ms / 1000), 0.0
        self._planned_s, self._planned_step = 0.0, 0
        self._rate_hz = 0.0
        self._rate_since_ns, self._rate_steps = _monotonic_ns(), 0
        self._next_check_s = 0.0
        self._has_failed = False
        self._ring: Optional[Ring] = None  # for frames that need no conversion
        self._next_close_look_ns = 0
        self._cost_ns = 0.0  # CPU time of a frame, smoothed

    @classmethod
    def open(cls, settings: Settings, place: int) -> "Optional[Lane]":
        """The lane for the run's env number `place`; None if other envs have taken all of them."""
        if settings.is_one_tile:
            return cls._open_tile(settings)
        is_grid = settings.mode == VideoModes.GRID
        if not is_grid or place == 0:
            try:
                writer = FastLaneWriter.create(settings.run_id)
                return cls(writer, settings, Grid(settings.run_id, settings.grid_limit) if is_grid else None)
            except FileExistsError:
                pass  # an env in another process has it
        tile = claim_tile(settings.run_id, max(1, place), settings.grid_limit) if is_grid else None
        return cls(tile, settings) if tile else None

    @classmethod
    def _open_tile(cls, settings: Settings) -> "Optional[Lane]":
        # No other tile instead: viewers know which lane they watch. A viewer may be preparing the page just now.
        deadline = _monotonic() + _PREPARED_S
        while True:
            try:
                return cls(FastLaneWriter.of_lane(tile_name(settings.run_id, settings.tile)), settings)
            except FileExistsError:
                if _monotonic() > deadline:
                    note(f"no frames of another env: tile {settings.tile} is in use")
                    return None
            time.sleep(0.01)

    def look(self, render: Callable[[], Any], reward: Any) -> None:
        """Render and show a frame if one is due."""
        now_s = _monotonic()
        if now_s >= self._next_plan_s:
            self._plan(now_s)
        self.next_look = self.steps + self._stride
        until = self.page.words[LEASE]
        if until != self.past:
            self._look_again(until, render, reward)

    def _plan(self, now_s: float) -> None:
        """What is not needed at every check: choose the number of steps between checks by the last interval."""
        patience = (self.steps - self._planned_step) * self._patience_s / max(1e-9, now_s - self._planned_s)
        self._stride = min(16, max(1, int(patience)))
        self._planned_s, self._planned_step = now_s, self.steps
        self._next_plan_s = now_s + self._plan_s
        if now_s >= self._next_check_s:
            self._next_check_s = now_s + _CHECK_S
            self._repair()

    def _look_again(self, until: int, render: Callable[[], Any], reward: Any) -> None:
        now = _monotonic_ns()
        if until <= now:
            self.past = until
        elif now >= self._next_ns:
            # On schedule, so that slow steps do not reduce the frame rate; but without catching up after a pause.
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
        """Show its first frame if someone watches."""
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
            pass  # another program removed it

    def _repair(self) -> None:
        self._writer.repair()
        if self._ring is not self._writer.ring:
            self._ring = None

    def _look_closely(self, render: Callable[[], Any], reward: Any, now: int) -> None:
        """Show a frame, measure its cost and check its shape."""
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
        self._writer.report_cost(int(self._cost_ns))

    def _show(self, frame: Any, reward: Any, now: int) -> None:
        """Show a frame that most likely has the shape of the one before.

        After thirty milliseconds of training the caches are cold, and this takes ten times as long as in a loop. So
        nothing is checked, not even the shape (three microseconds): numpy refuses most other shapes. Those that it
        would broadcast, pictures one pixel high or wide, are found by the next full check.
        """
        rolling = self._rolling_return
        if rolling is None:
            rolling = self.return_so_far  # no episode has ended yet
        try:
            if self._ring is not None:
                self._ring.put(frame, (reward, rolling, self._rate_hz), now, True)
                return
        except (ValueError, TypeError):
            pass
        self._show_another(frame, (float(reward), float(rolling), self._rate_hz), now)

    def _show_another(self, frame: Any, metrics: Tuple[float, float, float], now: int) -> None:
        """The same for a frame of any shape and type."""
        try:
            picture = self._prepare(frame)
            self._writer.put(picture, metrics, now)
            self._ring = self._writer.ring if picture is frame else None
            self._has_failed = False
        except OSError as error:
            self._next_ns = now + _RETRY_NS
            if not self._has_failed:
                note(f"no frames for now: {error}")
            self._has_failed = True

    def _prepare(self, frame: Any) -> Any:
        """The picture to show for a frame, with the writer prepared for its shape."""
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
    """The result of render() as height × width × channels of bytes."""
    if frame is None:
        raise ValueError("render() returned no picture")
    pixels = np.asarray(frame)
    if pixels.dtype != np.uint8:
        pixels = pixels.astype(np.uint8)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def note(text: str) -> None:
    """Print a note to the run's log. A training is never stopped because of a picture."""
    try:
        print(f"mosaic: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass  # no stderr
