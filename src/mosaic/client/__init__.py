"""Hop 7: the Python client, which the command line uses as well. Async, with a synchronous wrapper."""

from mosaic.catalog.request import RunOptions
from mosaic.client.asynchronous import AsyncTrainerClient
from mosaic.client.evaluation import AsyncEvaluation, Evaluation
from mosaic.client.experiments import ExperimentRuns
from mosaic.client.frames import Frame
from mosaic.client.handle import AsyncRunHandle, RunHandle
from mosaic.client.lanes import LaneState
from mosaic.client.run import Run
from mosaic.client.synchronous import TrainerClient
from mosaic.model.experiment import Experiment

__all__ = [
    "AsyncEvaluation",
    "AsyncRunHandle",
    "AsyncTrainerClient",
    "Evaluation",
    "Experiment",
    "ExperimentRuns",
    "Frame",
    "LaneState",
    "Run",
    "RunHandle",
    "RunOptions",
    "TrainerClient",
]
