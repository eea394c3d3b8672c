"""Frames: every lane's process publishes its own tile, and the conductor composes them into one picture."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from mosaic_sdk.fastlane.settings import Settings
from mosaic_sdk.names import TelemetryEnv, VideoModes

OFF: Mapping[str, str] = {TelemetryEnv.FASTLANE_ONLY: "0", TelemetryEnv.FASTLANE_VIDEO_MODE: VideoModes.OFF}


def is_enabled() -> bool:
    """Whether the run shows frames."""
    return Settings.of(os.environ).enabled


def lane_variables(lane: int, records: bool) -> Mapping[str, str]:
    """The environment variables of the process that owns a lane's environment. `records`: clips need every frame."""
    if not is_enabled() and not records:
        return OFF
    return {
        TelemetryEnv.FASTLANE_ONLY: "1",
        TelemetryEnv.FASTLANE_VIDEO_MODE: VideoModes.GRID,
        TelemetryEnv.FASTLANE_TILE: str(lane + 1),
        **({TelemetryEnv.FASTLANE_INTERVAL_MS: "0"} if records else {}),
    }


class Picture:
    """The composed picture; nothing where frames are off or cannot be shown."""

    def __init__(self, run_id: str, lanes: int, is_manual: bool) -> None:
        self._grid: Any = None
        if not is_enabled():
            return
        try:
            from mosaic_sdk.fastlane import LaneGrid

            self._grid = LaneGrid(run_id, lanes, keep_rendered=is_manual)
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            print(f"eval: no live picture: {error}", file=sys.stderr)

    def refresh(self) -> None:
        if self._grid is not None:
            self._grid.refresh()

    def close(self) -> None:
        if self._grid is not None:
            self._grid.close()
            self._grid = None
