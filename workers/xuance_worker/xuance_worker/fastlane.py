"""Frames. The SDK's import hook shows every environment that is made; this module sets it up where MOSAIC has not.

XuanCe always asks for `rgb_array`, so an environment can be rendered while someone watches, and is not otherwise.
"""

import os

from mosaic_sdk.names import TelemetryEnv


def show_frames() -> None:
    """A worker started by hand shows no frames: only MOSAIC installs the hook and reads them."""
    os.environ.setdefault(TelemetryEnv.FASTLANE_ONLY, "0")
