"""Tianshou: the trainer's counter of steps, and its tests as evaluations. Its loggers use a SummaryWriter."""

import weakref
from types import ModuleType
from typing import Any

from mosaic_sdk.observe.observer import Observer
from mosaic_sdk.observe.seam import call_after, call_instead, defined_in
from mosaic_sdk.observe.words import PROGRESS

_BY = "tianshou.trainer.BaseTrainer"


def listen(module: ModuleType, observer: Observer) -> None:
    def follow(_: None, trainer: Any, *args: Any, **kwargs: Any) -> None:
        _follow(observer, trainer)

    def test_episode(original: Any, *args: Any, **kwargs: Any) -> Any:
        with observer.episodes.evaluating():
            return original(*args, **kwargs)

    if defined_in(module, "BaseTrainer"):
        call_after(module.BaseTrainer, "__init__", observer.guarded(follow, _BY))
    if defined_in(module, "test_episode"):
        call_instead(module, "test_episode", test_episode)


def _follow(observer: Observer, trainer: Any) -> None:
    if not trainer.step_per_epoch or trainer.train_collector is None:
        return  # trained from a file: there are no steps
    itself = weakref.ref(trainer)
    latest = 0

    def count() -> int:
        nonlocal latest
        there = itself()
        latest = latest if there is None else int(there.env_step)
        return latest

    observer.announce(PROGRESS, _BY)
    observer.progress.follow(count, int(trainer.max_epoch) * int(trainer.step_per_epoch))
