"""The name of a run's control page in /dev/shm."""

from mosaic_sdk.fastlane.control import create_fastlane_name

__all__ = ["create_fastlane_name"]
