"""Many envs in one picture. The env in slot 0 composes it; each other env is a tile with its own lane.

The composer reads the tiles like any viewer. So a tile may be in another process (AsyncVectorEnv), is rendered only
while the grid is watched, and is always the newest frame of its env.
"""

import math
import time
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from mosaic_sdk.fastlane.control import tile_name
from mosaic_sdk.fastlane.reader import FastLaneReader
from mosaic_sdk.fastlane.writer import FastLaneWriter

_SEARCH_NS = 1_000_000_000


class Grid:
    """The picture of slot 0's frame and the tiles 1 … limit - 1."""

    def __init__(self, run_id: str, limit: int) -> None:
        self._run_id = run_id
        self._missing = set(range(1, limit))
        self._tiles: Dict[int, FastLaneReader] = {}
        self._next_search_ns = 0

    def compose(self, own: Any) -> Any:
        """`own` and the newest frame of every tile, in the order of the slots, row by row."""
        if time.monotonic_ns() >= self._next_search_ns:
            self._search()
        return lay_out([own, *self._frames(own)])

    def close(self) -> None:
        for tile in list(self._tiles):
            self._lose(tile)

    def _search(self) -> None:
        self._next_search_ns = time.monotonic_ns() + _SEARCH_NS
        for tile in sorted(self._tiles):
            if self._tiles[tile].is_over:
                self._lose(tile)
        for tile in sorted(self._missing):
            try:
                self._tiles[tile] = FastLaneReader.of_lane(tile_name(self._run_id, tile))
                self._missing.discard(tile)
            except OSError:
                pass  # no such env, or not yet

    def _lose(self, tile: int) -> None:
        self._tiles.pop(tile).close()
        self._missing.add(tile)

    def _frames(self, own: Any) -> List[Any]:
        """An env without a frame yet is a black tile, so that the picture keeps its shape."""
        frames = [self._tiles[tile].latest_frame() for tile in sorted(self._tiles)]
        return [np.zeros_like(own) if frame is None else frame.pixels for frame in frames]


def columns_of(count: int) -> int:
    """The columns of a nearly square grid."""
    return math.ceil(math.sqrt(count))


def lay_out(frames: List[Any], cell: Optional[Tuple[int, int, int]] = None) -> Any:
    """The frames as one nearly square picture. Each is in the corner of a cell, by default of the first one's size."""
    columns = columns_of(len(frames))
    rows = math.ceil(len(frames) / columns)
    height, width, channels = cell or frames[0].shape
    picture = np.zeros((rows * height, columns * width, channels), np.uint8)
    for number, frame in enumerate(frames):
        top, left = number // columns * height, number % columns * width
        part = frame[:height, :width, :channels]
        picture[top : top + part.shape[0], left : left + part.shape[1], : part.shape[2]] = part
    return picture


def claim_tile(run_id: str, first: int, limit: int) -> Optional[FastLaneWriter]:
    """The writer of tile `first`, or of the next free one: the order of unrelated processes is unknown."""
    for tile in range(first, limit):
        try:
            return FastLaneWriter.of_lane(tile_name(run_id, tile))
        except FileExistsError:
            continue
    return None
