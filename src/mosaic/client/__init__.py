"""Hop 7: the Python client, which the command line uses as well. Async, with a synchronous wrapper."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mosaic.catalog.request import RunOptions
from mosaic.client.asynchronous import AsyncTrainerClient
from mosaic.client.handle import AsyncRunHandle, RunHandle
from mosaic.client.run import Run
from mosaic.client.synchronous import TrainerClient
from mosaic.model.experiment import Experiment

if TYPE_CHECKING:
    from mosaic.client.evaluation import AsyncEvaluation, Evaluation
    from mosaic.client.experiments import ExperimentRuns
    from mosaic.client.frames import Frame
    from mosaic.client.lanes import LaneState

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

# Imported when they are used: most commands need none of them, and every command waits for this package.
_LATER = {
    "AsyncEvaluation": "evaluation",
    "Evaluation": "evaluation",
    "ExperimentRuns": "experiments",
    "Frame": "frames",
    "LaneState": "lanes",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
