"""analytics.json, where to find the results of a run, is written by the SDK."""

from mosaic_sdk.library.training import TENSORBOARD

__all__ = ["TENSORBOARD"]
