"""FastLane: live frames through shared memory. A frame costs one copy, and nothing while no one is watching.

    writer = FastLaneWriter.create(run_id, FastLaneConfig(width=640, height=480))
    writer.publish(pixels, metrics=FastLaneMetrics(last_reward=1.0))

    reader = FastLaneReader.attach(run_id)
    frame = reader.latest_frame()

Nothing is imported before it is used: a script without frames pays nothing, and code that only cleans up /dev/shm
(`fastlane.control`) needs no numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosaic_sdk.fastlane.control import FastLaneError, create_fastlane_name
    from mosaic_sdk.fastlane.lane_grid import LaneGrid
    from mosaic_sdk.fastlane.lane_recorder import LaneRecorder
    from mosaic_sdk.fastlane.reader import FastLaneReader, Frame
    from mosaic_sdk.fastlane.ring import FastLaneConfig, FastLaneMetrics
    from mosaic_sdk.fastlane.wrapper import is_fastlane_enabled, maybe_wrap_env
    from mosaic_sdk.fastlane.writer import FastLaneWriter

__all__ = [
    "FastLaneConfig",
    "FastLaneError",
    "FastLaneMetrics",
    "FastLaneReader",
    "FastLaneWriter",
    "Frame",
    "LaneGrid",
    "LaneRecorder",
    "create_fastlane_name",
    "is_fastlane_enabled",
    "maybe_wrap_env",
]

_HOMES = {
    "FastLaneConfig": "ring",
    "FastLaneError": "control",
    "FastLaneMetrics": "ring",
    "FastLaneReader": "reader",
    "FastLaneWriter": "writer",
    "Frame": "reader",
    "LaneGrid": "lane_grid",
    "LaneRecorder": "lane_recorder",
    "create_fastlane_name": "control",
    "is_fastlane_enabled": "wrapper",
    "maybe_wrap_env": "wrapper",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
