"""Live frames through shared memory. Nothing is imported before it is used: most of it needs numpy."""

from typing import TYPE_CHECKING

from mosaic_sdk.fastlane import __getattr__  # noqa: F401  # finds the names below

if TYPE_CHECKING:
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
