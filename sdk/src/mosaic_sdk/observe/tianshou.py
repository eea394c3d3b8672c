"""Tianshou: the trainer's counter of steps, and its tests as evaluations. Its loggers use a SummaryWriter."""

import weakref
from types import ModuleType
from typing import Any

from mosaic_sdk.observe.observer import Observer
from mosaic_sdk.observe.seam import call_after, call_instead, defined_in
from mosaic_sdk.observe.words import PROGRESS


def listen(module: ModuleType, observer: Observer) -> None:
    def test_episodes(original: Any, *args: Any, **kwargs: Any) -> Any:
        with observer.episodes.evaluating():
            return original(*args, **kwargs)

    if defined_in(module, "OnlineTrainer"):  # since 2.0, everything is in this module
        _follow(module.OnlineTrainer, observer, "_env_step", _total)
        call_instead(module.Trainer, "_collect_test_episodes", test_episodes)
    if defined_in(module, "BaseTrainer"):
        _follow(module.BaseTrainer, observer, "env_step", _total_before_2)
    if defined_in(module, "test_episode"):
        call_instead(module, "test_episode", test_episodes)


def _total(trainer: Any) -> int:
    return int(trainer.params.max_epochs) * int(trainer.params.epoch_num_steps)


def _total_before_2(trainer: Any) -> int:
    """0 if it is trained from a file: there are no steps."""
    return 0 if trainer.train_collector is None else int(trainer.max_epoch) * int(trainer.step_per_epoch or 0)


def _follow(trainer_class: Any, observer: Observer, counter: str, total_of: Any) -> None:
    by = "tianshou.trainer." + trainer_class.__name__

    def follow(_: None, trainer: Any, *args: Any, **kwargs: Any) -> None:
        total = total_of(trainer)
        if not total:
            return
        itself = weakref.ref(trainer)
        latest = 0

        def count() -> int:
            nonlocal latest
            there = itself()
            latest = latest if there is None else int(getattr(there, counter))
            return latest

        observer.announce(PROGRESS, by)
        observer.progress.follow(count, total)

    call_after(trainer_class, "__init__", observer.guarded(follow, by))
