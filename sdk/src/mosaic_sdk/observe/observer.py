"""What the hooks of all libraries tell MOSAIC. Episodes and progress have files of their own."""

import functools
import os
import re
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Set, Tuple

from mosaic_sdk import names
from mosaic_sdk.observe.batch import BatchEmitter
from mosaic_sdk.observe.episodes import Episodes
from mosaic_sdk.observe.numbers import number_or_none
from mosaic_sdk.observe.progress import Progress
from mosaic_sdk.observe.words import CHECKPOINTS, METRICS, OBSERVING, SETTINGS, note

# Values of settings with such names are not written.
_SECRET = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
_MOST_SETTINGS = 500
_LONGEST_SETTING = 500
_MOST_NAMES = 4096


class Observer:
    """1. The first line of each hook is preceded by an `observing` line that names it.
    2. A value that another hook has already told (the same name, step and number) is not told again.
    """

    def __init__(self, emitter: BatchEmitter, parsed: List[Any]) -> None:
        self.emitter = emitter
        self.progress = Progress(emitter, parsed)
        self.episodes = Episodes(self.emitter, self.progress, self.announce)
        self._announced: Set[Tuple[str, str]] = set()
        self._broken: Set[str] = set()
        self._latest: Dict[str, Tuple[int, float, str]] = {}
        self._counts: Dict[str, int] = {}
        self._mutes = 0
        self._settings: Dict[str, str] = {}
        self._folder = os.path.realpath(os.environ.get(names.WorkerEnv.RUN_DIR) or os.curdir)

    def announce(self, what: str, by: str) -> None:
        if (what, by) not in self._announced:
            self._announced.add((what, by))
            self.emitter.lifecycle(OBSERVING, {"what": what, "by": by})

    def guarded(self, listener: Callable[..., None], by: str) -> Callable[..., None]:
        """`listener`, whose first error is noted and ends it."""

        @functools.wraps(listener)
        def listen(*args: Any, **kwargs: Any) -> None:
            if by in self._broken:
                return
            try:
                listener(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  # the script must go on, whatever a library's values do
                self.give_up(by, error)

        return listen

    def give_up(self, by: str, error: BaseException) -> None:
        self._broken.add(by)
        note("{} is not observed any more: {}: {}".format(by, type(error).__name__, error))

    def metric(self, name: str, value: Any, step: Any, by: str) -> None:
        """One value of a curve. Without a step it is the number of values of this curve."""
        number = number_or_none(value)
        if number is None or self._mutes:
            return
        at = self._step_of(name, step)
        if self._is_told(name, number, at, by):
            return
        self.announce(METRICS, by)
        self.emitter.metric(name, number, at)

    def metrics(self, values: Mapping[str, Any], step: Any, by: str) -> None:
        """Several values of the same step, in one line."""
        numbers = {str(name): number_or_none(value) for name, value in values.items()}
        found = {name: number for name, number in numbers.items() if number is not None}
        if not found or self._mutes:
            return
        at = self._step_of(next(iter(found)), step)
        new = {name: number for name, number in found.items() if not self._is_told(name, number, at, by)}
        if new:
            self.announce(METRICS, by)
            self.emitter.metrics(new, at)

    @contextmanager
    def told_already(self) -> Iterator[None]:
        """What is logged in here has been told: a logger that passes its values to a writer is one source, not two."""
        self._mutes += 1
        try:
            yield
        finally:
            self._mutes -= 1

    def settings(self, values: Mapping[str, Any], by: str) -> None:
        """The script's settings, as one line whenever they have changed."""
        told = {str(key): _plain(str(key), value) for key, value in list(values.items())[:_MOST_SETTINGS]}
        if not told or self._settings.get(by) == repr(told):
            return
        self._settings[by] = repr(told)
        self.announce(SETTINGS, by)
        self.emitter.lifecycle(SETTINGS, {"by": by, "values": told})

    def checkpoint(self, path: Any, by: str, **details: Any) -> None:
        """A file that was written; reported if it is in the run's folder."""
        if not isinstance(path, (str, os.PathLike)):
            return
        real = os.path.realpath(os.fsdecode(path))
        if not real.startswith(self._folder + os.sep) or not os.path.isfile(real):
            return
        self.announce(CHECKPOINTS, by)
        steps = self.progress.steps()
        self.emitter.checkpoint_saved(real, **({"step": steps} if steps else {}), **details)

    def _step_of(self, name: str, step: Any) -> int:
        number = number_or_none(step)
        if number is not None and number == number and abs(number) != float("inf"):
            return int(number)
        count = self._counts[name] = self._counts.get(name, -1) + 1
        return count

    def _is_told(self, name: str, number: float, step: int, by: str) -> bool:
        latest = self._latest.get(name)
        if latest is not None and latest[2] != by and latest[:2] == (step, number):
            return True
        if len(self._latest) < _MOST_NAMES or latest is not None:
            self._latest[name] = (step, number, by)
        return False


def _plain(key: str, value: Any) -> Any:
    if _SECRET.search(key):
        return "(not shown)"
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_SETTING else text[:_LONGEST_SETTING] + "…"
