"""Names of the variables that control frames, and their values."""

from mosaic_sdk.names import TelemetryEnv, VideoModes

__all__ = ["TelemetryEnv", "VideoModes"]
