"""Frames: the SDK's import hook shows every environment that gymnasium.make creates, unless it is told not to."""

import os
from contextlib import contextmanager
from typing import Iterator

from mosaic_sdk.names import TelemetryEnv


@contextmanager
def unshown() -> Iterator[None]:
    """Do not show environments that are created inside the block: they would replace the training's frames."""
    before = os.environ.get(TelemetryEnv.FASTLANE_ONLY)
    os.environ[TelemetryEnv.FASTLANE_ONLY] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[TelemetryEnv.FASTLANE_ONLY]
        else:
            os.environ[TelemetryEnv.FASTLANE_ONLY] = before
