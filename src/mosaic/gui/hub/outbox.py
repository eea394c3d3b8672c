"""Calls that wait for the GUI's next tick."""

import sys
import time
from collections import deque
from collections.abc import Callable

Call = Callable[[], None]

BUDGET_S = 0.015  # of one tick: what is left waits for the next one, so that the window stays responsive


class Outbox:
    """Filled by the hub's thread, emptied by the GUI's. deque is safe for that without a lock.

    1. Calls are made in order. 2. A call that fails is reported by sys.excepthook; the next ones are made all the same.
    """

    def __init__(self, budget_s: float = BUDGET_S, clock: Callable[[], float] = time.perf_counter) -> None:
        self._calls: deque[Call] = deque()
        self._budget_s = budget_s
        self._clock = clock

    def __len__(self) -> int:
        return len(self._calls)

    def put(self, call: Call) -> None:
        self._calls.append(call)

    def deliver(self) -> None:
        """Make the calls that wait now, until the budget is spent; at least one."""
        end = self._clock() + self._budget_s
        for _ in range(len(self._calls)):
            _make(self._calls.popleft())
            if self._clock() >= end:
                return

    def clear(self) -> None:
        self._calls.clear()


def _make(call: Call) -> None:
    try:
        call()
    except Exception:  # noqa: BLE001 - the edge of the window: one view's mistake must not stop the others
        sys.excepthook(*sys.exc_info())
