"""Frames. The SDK's import hook shows every environment that gymnasium.make creates: there is nothing to do."""

from mosaic_sdk.library.frames import unshown

__all__ = ["unshown"]
