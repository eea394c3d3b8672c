"""Observes a script that knows nothing of MOSAIC: what it logs, its episodes, its progress, its checkpoints.

`autowrap/sitecustomize.py` calls `listen` for each module that it has in its table, right after that module was run,
and only if MOSAIC_OBSERVE=1. One file here observes one library; each has a function

    listen(module, observer)

which replaces functions of that module by ones that do the same and then tell the observer. Promises:

1. A library computes what it would have computed: its results, errors and random numbers are its own.
2. An error in here is noted on stderr once, and ends that hook; the script goes on.
3. One value is one line, even if the script logs it in two places, and one episode is one line.

Standard library only, Python 3.8 and newer: a script's environment does not have the SDK, which is loaded by path.
"""

import importlib
from types import ModuleType
from typing import Any, List


def listen(module: ModuleType, file: str, parsed: List[Any]) -> None:
    """Observe a library's module with the file of this package that knows it.

    `parsed`: the options of command lines that the script has parsed, and will have parsed.
    """
    importlib.import_module("mosaic_sdk.observe." + file).listen(module, _observer(parsed))


_observers: List[Any] = []  # the one of this process


def _observer(parsed: List[Any]) -> Any:
    if not _observers:
        from mosaic_sdk.observe.batch import BatchEmitter
        from mosaic_sdk.observe.observer import Observer

        _observers.append(Observer(BatchEmitter(), parsed))
    return _observers[0]
