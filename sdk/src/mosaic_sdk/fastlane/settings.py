"""How the frames of this process are shown, from its environment variables."""

import os
from dataclasses import dataclass
from typing import Mapping

from mosaic_sdk.names import TelemetryEnv, VideoModes, WorkerEnv


@dataclass(frozen=True)
class Settings:
    run_id: str = ""
    mode: str = VideoModes.OFF
    slot: int = 0  # which env is shown in mode single
    grid_limit: int = 4  # how many are shown in mode grid
    interval_ms: float = 33.0
    max_dim: int = 0  # 0: no limit
    tile: int = 0  # in mode grid: the tile of this process, if another one composes the grid

    @classmethod
    def of(cls, env: Mapping[str, str] = os.environ) -> "Settings":
        enabled = env.get(TelemetryEnv.FASTLANE_ONLY, "0").lower() in ("1", "true", "yes", "on")
        run_id = env.get(WorkerEnv.RUN_ID, "")
        mode = env.get(TelemetryEnv.FASTLANE_VIDEO_MODE, "").lower() or VideoModes.SINGLE
        return cls(
            run_id,
            mode if enabled and run_id else VideoModes.OFF,
            int(_number(env, TelemetryEnv.FASTLANE_SLOT, cls.slot)),
            int(_number(env, TelemetryEnv.FASTLANE_GRID_LIMIT, cls.grid_limit)),
            _number(env, TelemetryEnv.FASTLANE_INTERVAL_MS, cls.interval_ms),
            int(_number(env, TelemetryEnv.FASTLANE_MAX_DIM, cls.max_dim)),
            int(_number(env, TelemetryEnv.FASTLANE_TILE, cls.tile)),
        )

    def shows(self, place: int) -> bool:
        """Whether the run's env number `place` is shown."""
        if self.is_one_tile:
            return place == 0
        return place < self.grid_limit if self.mode == VideoModes.GRID else place == self.slot

    @property
    def is_one_tile(self) -> bool:
        """Whether this process is one tile of a grid that another process composes (an evaluation's lane)."""
        return self.mode == VideoModes.GRID and self.tile > 0

    @property
    def enabled(self) -> bool:
        return self.mode in (VideoModes.SINGLE, VideoModes.GRID)


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    """An invalid number must not stop a training: it counts as not given."""
    try:
        number = float(env.get(name, ""))
    except ValueError:
        return default
    return number if 0 <= number < 1e9 else default
