"""Syllabus-RL as this worker imports it: without the packages it names and does not need here, and without its prints.

Its modules import ray (a quarter of a gigabyte), PettingZoo, joblib and matplotlib at the top, for classes that a
sequential curriculum in one process never touches. Where one is not installed, an empty stand-in takes its place while
Syllabus is imported, and is taken away again: nobody else shall find it. One of its classes makes a segment of shared
memory while it is defined; a list takes that place.
"""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import shared_memory
from types import ModuleType
from typing import Any

_NOT_NEEDED = {
    "ray": (),
    "joblib": (),
    "matplotlib": ("matplotlib.pyplot",),
    "pettingzoo": ("pettingzoo.utils", "pettingzoo.utils.wrappers", "pettingzoo.utils.wrappers.base_parallel"),
}


class _StandIn(ModuleType):
    """A module in which every name is a class that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *args, **kwargs: None})


@contextmanager
def _stand_ins() -> Iterator[None]:
    missing = [name for name in _NOT_NEEDED if name not in sys.modules and importlib.util.find_spec(name) is None]
    names = [full for name in missing for full in (name, *_NOT_NEEDED[name])]
    for name in names:
        sys.modules[name] = _StandIn(name)
    shareable = shared_memory.ShareableList
    shared_memory.ShareableList = list  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        shared_memory.ShareableList = shareable  # type: ignore[misc]
        for name in names:
            del sys.modules[name]


@contextmanager
def without_wandb() -> Iterator[None]:
    """Every curriculum makes a table for Weights & Biases if it can import it, which takes seconds. Nobody reads it."""
    if "wandb" in sys.modules:
        yield
        return
    sys.modules["wandb"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["wandb"]


def hush(module: ModuleType) -> None:
    """What the module prints goes to stderr: stdout is for telemetry."""

    def to_stderr(*words: object, **options: Any) -> None:
        print(*words, **{**options, "file": sys.stderr})

    module.print = to_stderr  # type: ignore[attr-defined]


def silence(module: ModuleType) -> None:
    """What the module prints is left out."""
    module.print = lambda *words, **options: None  # type: ignore[attr-defined]


with _stand_ins():
    from syllabus.core import GymnasiumSyncWrapper, ReinitTaskWrapper
    from syllabus.curricula import SequentialCurriculum, sequential
    from syllabus.task_space import DiscreteTaskSpace

# A number at every episode, left over from its authors' debugging.
silence(sequential)

__all__ = [
    "DiscreteTaskSpace",
    "GymnasiumSyncWrapper",
    "ReinitTaskWrapper",
    "SequentialCurriculum",
    "hush",
    "without_wandb",
]
