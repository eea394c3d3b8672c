"""Live frames through shared memory."""

from mosaic_sdk.fastlane import (
    FastLaneConfig,
    FastLaneMetrics,
    FastLaneReader,
    FastLaneWriter,
    create_fastlane_name,
    is_fastlane_enabled,
    maybe_wrap_env,
)

__all__ = [
    "FastLaneConfig",
    "FastLaneMetrics",
    "FastLaneReader",
    "FastLaneWriter",
    "create_fastlane_name",
    "is_fastlane_enabled",
    "maybe_wrap_env",
]
