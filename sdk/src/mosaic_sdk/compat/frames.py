"""Frames: the variables that ask for them, and several frames as one picture."""

from typing import Any, Dict, List, Sequence

from mosaic_sdk.names import TelemetryEnv, VideoModes


def apply_fastlane_environment(
    env: Dict[str, Any],
    *,
    fastlane_only: bool,
    fastlane_slot: int,
    video_mode: str = VideoModes.SINGLE,
    grid_limit: int = 4,
) -> Dict[str, Any]:
    """Set the variables of frames in `env`, and return it."""
    env[TelemetryEnv.FASTLANE_ONLY] = str(int(fastlane_only))
    env[TelemetryEnv.FASTLANE_SLOT] = str(fastlane_slot)
    env[TelemetryEnv.FASTLANE_VIDEO_MODE] = video_mode
    env[TelemetryEnv.FASTLANE_GRID_LIMIT] = str(max(1, grid_limit))
    return env


def tile_frames(frames: Sequence[Any]) -> Any:
    """Frames of one shape as one nearly square picture; what remains of the last row is black."""
    from mosaic_sdk.fastlane.grid import lay_out  # imports numpy

    arrays: List[Any] = list(frames)
    shapes = {frame.shape for frame in arrays}
    if len(shapes) != 1 or len(arrays[0].shape) != 3:
        raise ValueError(
            f"tile_frames takes frames of one shape (height, width, channels); these have {shapes or 'none'}"
        )
    return lay_out(arrays)
