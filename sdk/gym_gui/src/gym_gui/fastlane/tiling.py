"""Several frames as one picture."""

from mosaic_sdk.compat.frames import tile_frames

__all__ = ["tile_frames"]
