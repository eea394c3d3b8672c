"""RLlib: the numbers that `train` returns, and its counter of env steps.

Its env runners are processes of Ray, on any machine, whose output Ray collects, shortens and repeats. They are not
observed (`_listen` in autowrap/sitecustomize.py): the script's own process has their means from `train`.
"""

import weakref
from types import ModuleType
from typing import Any, Dict, Iterator, List, Tuple

from mosaic_sdk.observe.numbers import number_or_none
from mosaic_sdk.observe.observer import Observer
from mosaic_sdk.observe.seam import call_after, call_instead, defined_in
from mosaic_sdk.observe.words import PROGRESS

_BY = "ray.rllib.Algorithm.train"
# The names that `mosaic import` knows, too: env steps of RLlib's versions, newest first, and the number of the call.
_STEPS = ("num_env_steps_sampled_lifetime", "env_runners/num_env_steps_sampled_lifetime", "timesteps_total")
_CALL = "training_iteration"
_SKIPPED = {"config", "pid", "timestamp", "hist_stats", "sampler_results", "done", "node_ip", "trial_id"}


def listen(module: ModuleType, observer: Observer) -> None:
    if defined_in(module, "Trainable"):
        call_after(module.Trainable, "train", observer.guarded(Trainings(observer).note, _BY))
    if defined_in(module, "Algorithm"):

        def evaluate(original: Any, *args: Any, **kwargs: Any) -> Any:
            with observer.episodes.evaluating():
                return original(*args, **kwargs)

        call_instead(module.Algorithm, "evaluate", evaluate)


class Trainings:
    """What the calls of `train` returned."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        # The env steps of each algorithm, alone in a list: they are known when the script has dropped the algorithm.
        self._latest: "weakref.WeakKeyDictionary[Any, List[int]]" = weakref.WeakKeyDictionary()

    def note(self, result: Any, algorithm: Any, *args: Any, **kwargs: Any) -> None:
        values = dict(_numbers(result, ""))
        steps = next((int(values[name]) for name in _STEPS if name in values), None)
        self._observer.metrics(values, values.get(_CALL) if steps is None else steps, _BY)
        # An env runner in this process is observed itself, and counts more finely.
        if steps is not None and not self._observer.episodes.steps():
            self._follow(algorithm, steps)

    def _follow(self, algorithm: Any, steps: int) -> None:
        if algorithm in self._latest:
            self._latest[algorithm][0] = steps
            return
        latest = self._latest[algorithm] = [steps]
        self._observer.announce(PROGRESS, _BY)
        self._observer.progress.follow(lambda: latest[0])


def _numbers(found: Dict[Any, Any], prefix: str) -> Iterator[Tuple[str, float]]:
    """Names joined by slashes, as in RLlib's own progress.csv."""
    for key, value in found.items():
        if isinstance(value, dict):
            if key not in _SKIPPED:
                yield from _numbers(value, "{}{}/".format(prefix, key))
        elif key not in _SKIPPED and not isinstance(value, bool):
            number = number_or_none(value)
            if number is not None:
                yield prefix + str(key), number
