"""Imports Syllabus-RL without the packages that it does not need here, and suppresses its output.

Its modules import ray (250 MB), PettingZoo, joblib and matplotlib for classes that a sequential curriculum in one
process never uses. An empty placeholder replaces each one that is not installed while Syllabus is imported, and is
removed afterwards so that no other code finds it. One of its classes allocates shared memory when it is defined; a list
replaces that.
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
    """A module in which every attribute is an empty class."""

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
    """Keep curricula from importing wandb: it takes seconds, and the table that they create with it is unused."""
    if "wandb" in sys.modules:
        yield
        return
    sys.modules["wandb"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["wandb"]


def hush(module: ModuleType) -> None:
    """Redirect the module's prints to stderr, because stdout is for telemetry."""

    def to_stderr(*values: object, **options: Any) -> None:
        print(*values, **{**options, "file": sys.stderr})

    module.print = to_stderr  # type: ignore[attr-defined]


def silence(module: ModuleType) -> None:
    """Discard the module's prints."""
    module.print = lambda *values, **options: None  # type: ignore[attr-defined]


with _stand_ins():
    from syllabus.core import GymnasiumSyncWrapper, ReinitTaskWrapper
    from syllabus.curricula import SequentialCurriculum, sequential
    from syllabus.task_space import DiscreteTaskSpace

# It prints a number at every episode, left over from debugging.
silence(sequential)

__all__ = [
    "DiscreteTaskSpace",
    "GymnasiumSyncWrapper",
    "ReinitTaskWrapper",
    "SequentialCurriculum",
    "hush",
    "without_wandb",
]
