"""The lanes of an evaluation in one picture, composed by a process that has no env of its own.

    grid = LaneGrid(run_id, count)
    while playing:
        step_all_lanes()
        grid.refresh()                      # composes only if someone watches the run and a frame is due
    grid.close()

Each lane publishes its frames as a tile: mode grid, GYM_GUI_FASTLANE_TILE = lane + 1. Viewers of the run see this
picture, viewers of one lane its tile.
"""

import contextlib
import time
from typing import Any, Dict, Optional

import numpy as np

from mosaic_sdk.fastlane.control import ControlPage, lane_name, remove_dead
from mosaic_sdk.fastlane.grid import columns_of, lay_out
from mosaic_sdk.fastlane.lane import note
from mosaic_sdk.fastlane.reader import LEASE_S, FastLaneReader
from mosaic_sdk.fastlane.ring import config_of
from mosaic_sdk.fastlane.scale import shrink
from mosaic_sdk.fastlane.writer import FastLaneWriter

_INTERVAL_NS = 33_000_000
_RETRY_NS = 5_000_000_000  # after /dev/shm was full
_LARGEST_SIDE = 2048  # pixels of the whole picture
_EMPTY = (64, 64, 3)  # a cell before any lane has a frame


class LaneGrid:
    """Its promises:

    1. While no one watches the run, refresh() reads one word and returns, and the lanes render nothing because of it.
    2. A lane is always in the same cell; one without a frame, or whose process is gone, is black or keeps its last.
    3. A full /dev/shm is reported once and retried every few seconds.
    4. After close() nothing of the run is left in /dev/shm but tiles whose lane still lives.
    """

    def __init__(self, run_id: str, count: int, keep_rendered: bool = False) -> None:
        """`keep_rendered`: the lanes render without viewers too, so that one who comes while all lanes wait for a
        command finds their pictures. For manual evaluations, which are slow anyway."""
        self._run_id = run_id
        self._count = count
        self._keep_rendered = keep_rendered
        self._writer = FastLaneWriter.create(run_id)
        self._tiles: Dict[int, FastLaneReader] = {}
        self._next_ns = 0
        self._has_failed = False

    def refresh(self) -> bool:
        """Show the newest frames of all lanes if that is due; whether it was. Call it after every step, and a few times
        a second while the lanes wait."""
        is_watched = self._writer.is_watched
        if not is_watched and not self._keep_rendered:
            return False
        now = time.monotonic_ns()
        if now < self._next_ns:
            return False
        self._next_ns = now + _INTERVAL_NS
        self._find_tiles()
        return is_watched and self._try_to_show(now)

    def close(self) -> None:
        for tile in self._tiles.values():
            tile.close()
        self._tiles.clear()
        with contextlib.suppress(FileNotFoundError):  # another program removed it
            self._writer.close()
            self._writer.unlink()
        remove_dead(self._run_id)  # of killed lanes, and pages that were prepared for lanes without frames

    def _find_tiles(self) -> None:
        """Attach to every lane, and renew the leases."""
        for lane in range(self._count):
            if lane not in self._tiles:
                name = lane_name(self._run_id, lane)
                with contextlib.suppress(OSError):
                    ControlPage.prepare(name, time.monotonic_ns() + int(LEASE_S * 1e9))
                    self._tiles[lane] = FastLaneReader.of_lane(name)
        for tile in self._tiles.values():
            tile.renew()

    def _try_to_show(self, now: int) -> bool:
        try:
            self._show(now)
        except OSError as error:
            self._next_ns = now + _RETRY_NS
            if not self._has_failed:
                note(f"no picture of all lanes for now: {error}")
            self._has_failed = True
            return False
        self._has_failed = False
        return True

    def _show(self, now: int) -> None:
        self._writer.repair()
        frames = [self._frame(lane) for lane in range(self._count)]
        shapes = [frame.shape for frame in frames if frame is not None] or [_EMPTY]
        cell = tuple(max(sides) for sides in zip(*shapes))
        black = np.zeros(_EMPTY, np.uint8)
        picture = lay_out([black if frame is None else frame for frame in frames], cell)
        self._writer.reshape(config_of(picture))
        self._writer.put(picture, (0.0, 0.0, 0.0), now)

    def _frame(self, lane: int) -> Optional[Any]:
        tile = self._tiles.get(lane)
        frame = tile.latest_frame() if tile else None
        return None if frame is None else shrink(frame.pixels, _LARGEST_SIDE // columns_of(self._count))
