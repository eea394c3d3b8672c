"""The number of an env among those of its run, which `slot` and the tiles of a grid refer to."""

import os
import re
import sys
from typing import Optional, Set

# How gymnasium's AsyncVectorEnv names the process of its env n.
_ASYNC_WORKER = re.compile(r"Worker<.*>-([0-9]+)\Z")


class Slots:
    """The envs of this process, each with the lowest number that is free."""

    def __init__(self) -> None:
        self._taken: Set[int] = set()
        os.register_at_fork(after_in_child=self._taken.clear)

    def take(self) -> int:
        number = 0
        while number in self._taken:
            number += 1
        self._taken.add(number)
        return number

    def give_back(self, number: int) -> None:
        self._taken.discard(number)


def place_in_run(number: int) -> Optional[int]:
    """The number in the whole run of this process's env `number`; None if it has none."""
    first = _async_worker()
    if first is None:
        return number
    return first if number == 0 else None


def _async_worker() -> Optional[int]:
    processes = sys.modules.get("multiprocessing.process")  # not imported: then no process was started with it
    match = _ASYNC_WORKER.match(processes.current_process().name) if processes else None
    return int(match.group(1)) if match else None
