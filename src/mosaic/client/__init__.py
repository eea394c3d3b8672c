"""Hop 7: the Python client, which the command line uses as well. Async, with a synchronous wrapper."""

from mosaic.catalog.request import RunOptions
from mosaic.client.asynchronous import AsyncTrainerClient
from mosaic.client.frames import Frame
from mosaic.client.handle import AsyncRunHandle, RunHandle
from mosaic.client.run import Run
from mosaic.client.synchronous import TrainerClient

__all__ = ["AsyncRunHandle", "AsyncTrainerClient", "Frame", "Run", "RunHandle", "RunOptions", "TrainerClient"]
