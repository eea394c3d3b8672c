"""analytics.json, where to find the results of a run, is written by the SDK."""

from mosaic_sdk.library.training import TENSORBOARD, VIDEOS

__all__ = ["TENSORBOARD", "VIDEOS"]
