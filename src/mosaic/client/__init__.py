"""Hop 7: what the CLI, the GUI and a user's own code call. Async first, with a sync face; knows no Qt."""

from mosaic.client.asynchronous import AsyncTrainerClient
from mosaic.client.frames import Frame
from mosaic.client.run import Run
from mosaic.client.synchronous import TrainerClient

__all__ = ["AsyncTrainerClient", "Frame", "Run", "TrainerClient"]
