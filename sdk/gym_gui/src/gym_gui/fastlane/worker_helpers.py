"""The variables that ask for frames."""

from mosaic_sdk.compat.frames import apply_fastlane_environment

__all__ = ["apply_fastlane_environment"]
