"""Frames. The SDK's import hook shows what gymnasium.make creates, and envs.py wraps PettingZoo's games.

If other processes step the environments, the first of them shows its own.
"""

import os

from mosaic_sdk.names import TelemetryEnv


def show_only_first(worker_index: int) -> None:
    """Called in each process that steps environments, before it creates them. Number 0 is the training's own."""
    if worker_index > 1:
        os.environ[TelemetryEnv.FASTLANE_ONLY] = "0"
