"""Hop 7: the Python client, which the command line uses as well. Async, with a synchronous wrapper."""

from importlib import import_module
from typing import TYPE_CHECKING

from mosaic.catalog.request import RunOptions
from mosaic.client.asynchronous import AsyncTrainerClient
from mosaic.client.experiments import ExperimentRuns
from mosaic.client.frames import Frame
from mosaic.client.handle import AsyncRunHandle, RunHandle
from mosaic.client.run import Run
from mosaic.client.synchronous import TrainerClient
from mosaic.model.experiment import Experiment

if TYPE_CHECKING:
    from mosaic.client.evaluation import AsyncEvaluation, Evaluation
    from mosaic.client.lanes import LaneState

# Imported when they are used: most commands have nothing to do with evaluations, and each imports this package.
_LATER = {
    "AsyncEvaluation": "mosaic.client.evaluation",
    "Evaluation": "mosaic.client.evaluation",
    "LaneState": "mosaic.client.lanes",
}

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


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
