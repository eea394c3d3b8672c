"""Weights & Biases: wandb.log and run.log, and wandb.config; also if it is offline or disabled."""

import weakref
from types import ModuleType
from typing import Any, Dict

from mosaic_sdk.observe.numbers import number_or_none
from mosaic_sdk.observe.observer import Observer
from mosaic_sdk.observe.seam import argument, call_after, defined_in

_LOG, _CONFIG = "wandb.log", "wandb.config"


def listen(module: ModuleType, observer: Observer) -> None:
    steps = Steps()

    def init(run: Any, *args: Any, **kwargs: Any) -> None:
        observer.settings(dict(run.config), _CONFIG)

    def log(_: None, run: Any, data: Any, *args: Any, **kwargs: Any) -> None:
        step = argument(args, kwargs, 0, "step")
        commit = argument(args, kwargs, 1, "commit")
        observer.settings(dict(run.config), _CONFIG)  # what the script has added meanwhile
        observer.metrics(_flat(data), steps.of(run, data, step, commit), _LOG)

    if defined_in(module, "init"):
        call_after(module, "init", observer.guarded(init, _CONFIG))
    for name in ("Run", "NoopRun"):  # the second one is what a disabled W&B returns
        run_class = defined_in(module, name)
        if run_class is not None:
            call_after(run_class, "log", observer.guarded(log, _LOG))


class Steps:
    """The step of a call: the one that it names, else W&B's own, which counts calls that commit.

    A value global_step comes first: scripts that log one mean it as their axis.
    """

    def __init__(self) -> None:
        self._next: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()

    def of(self, run: Any, data: Any, step: Any, commit: Any) -> int:
        named = number_or_none(step)
        own = self._next.get(run, 0) if named is None else int(named)
        is_committed = commit if commit is not None else named is None
        self._next[run] = own + 1 if is_committed else own
        axis = number_or_none(data.get("global_step"))
        return own if axis is None or named is not None else int(axis)


def _flat(data: Any, prefix: str = "") -> Dict[str, Any]:
    """W&B shows a dict inside a dict as names with a dot."""
    found: Dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, dict):
            found.update(_flat(value, prefix + str(name) + "."))
        else:
            found[prefix + str(name)] = value
    return found
