"""Stable-Baselines3: its logger, its counter of steps, its saved models, its vector envs and its evaluations.

What derives from its classes (sb3-contrib, sbx) is observed too.
"""

import os
import weakref
from types import ModuleType
from typing import Any

from mosaic_sdk.observe.observer import Observer
from mosaic_sdk.observe.seam import argument, call_after, call_instead
from mosaic_sdk.observe.vectors import hear_vector
from mosaic_sdk.observe.words import PROGRESS

_HERE = "stable_baselines3."


def listen(module: ModuleType, observer: Observer) -> None:
    part = module.__name__.rpartition(".")[2]
    _PARTS[part](module, observer)


def _listen_to_logger(module: ModuleType, observer: Observer) -> None:
    by = _HERE + "Logger"

    def tell(logger: Any, step: Any) -> None:
        # What its TensorBoard writer would get.
        left_out = {name for name, words in logger.name_to_excluded.items() if "tensorboard" in (words or ())}
        values = {name: value for name, value in logger.name_to_value.items() if name not in left_out}
        observer.metrics(values, step, by)

    tell_guarded = observer.guarded(tell, by)

    def dump(original: Any, logger: Any, *args: Any, **kwargs: Any) -> Any:
        tell_guarded(logger, argument(args, kwargs, 0, "step", 0))  # before: it forgets the values afterwards
        with observer.told_already():
            return original(logger, *args, **kwargs)

    call_instead(module.Logger, "dump", dump)


def _listen_to_algorithms(module: ModuleType, observer: Observer) -> None:
    by = _HERE + "BaseAlgorithm.learn"

    def setup_learn(original: Any, algorithm: Any, *args: Any, **kwargs: Any) -> Any:
        observer.progress.settle()  # the counter may start from 0 again
        result = original(algorithm, *args, **kwargs)
        start = observer.guarded(_follow, by)
        start(observer, algorithm, result, by)
        return result

    def save(_: None, algorithm: Any, path: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(path, (str, os.PathLike)):
            name = os.fspath(path)
            written = name if os.path.splitext(name)[1] else name + ".zip"
            observer.checkpoint(written, _HERE + "BaseAlgorithm.save")

    call_instead(module.BaseAlgorithm, "_setup_learn", setup_learn)
    call_after(module.BaseAlgorithm, "save", observer.guarded(save, _HERE + "BaseAlgorithm.save"))


def _follow(observer: Observer, algorithm: Any, result: Any, by: str) -> None:
    itself = weakref.ref(algorithm)
    start = int(algorithm.num_timesteps)
    latest = start

    def count() -> int:
        nonlocal latest
        there = itself()
        latest = latest if there is None else int(there.num_timesteps)
        return latest - start

    observer.announce(PROGRESS, by)
    observer.progress.follow(count, _whole_rollouts(algorithm, int(result[0]) - start))


def _whole_rollouts(algorithm: Any, steps: int) -> int:
    """How far a training really goes that was asked for `steps`: on-policy algorithms end after a whole rollout."""
    if not hasattr(algorithm, "rollout_buffer"):
        return steps
    rollout = int(algorithm.n_steps) * int(algorithm.n_envs)
    return -(-steps // rollout) * rollout


def _listen_to_evaluations(module: ModuleType, observer: Observer) -> None:
    def evaluate(original: Any, *args: Any, **kwargs: Any) -> Any:
        with observer.episodes.evaluating():
            return original(*args, **kwargs)

    call_instead(module, "evaluate_policy", evaluate)


def _listen_to_envs_here(module: ModuleType, observer: Observer) -> None:
    """Those that `make` made are observed already; a script's own class of envs is not."""

    def hear(_: None, envs: Any, *args: Any, **kwargs: Any) -> None:
        for env in getattr(envs, "envs", ()):
            observer.episodes.hear(env, _HERE + "DummyVecEnv")

    call_after(module.DummyVecEnv, "__init__", hear)


def _listen_to_envs_elsewhere(module: ModuleType, observer: Observer) -> None:
    def hear(_: None, envs: Any, *args: Any, **kwargs: Any) -> None:
        hear_vector(envs, "step_wait", observer.episodes, _HERE + "SubprocVecEnv")

    call_after(module.SubprocVecEnv, "__init__", hear)


def _listen_to_monitor(module: ModuleType, observer: Observer) -> None:
    def hear(_: None, env: Any, *args: Any, **kwargs: Any) -> None:
        observer.episodes.hear(env, _HERE + "Monitor")

    call_after(module.Monitor, "__init__", hear)


_PARTS = {
    "logger": _listen_to_logger,
    "base_class": _listen_to_algorithms,
    "evaluation": _listen_to_evaluations,
    "dummy_vec_env": _listen_to_envs_here,
    "subproc_vec_env": _listen_to_envs_elsewhere,
    "monitor": _listen_to_monitor,
}
