"""Frames. The SDK's import hook shows every environment that gymnasium.make creates: there is nothing to do."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

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
