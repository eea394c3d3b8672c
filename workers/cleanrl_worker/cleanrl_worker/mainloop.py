"""The script's main loop, observed through its counter: `for update in range(1, num_updates + 1)`.

The script finds our `range` among its own globals. When it calls it in the line of the main loop, everything is set up
and nothing is trained yet: a training is resumed there. The start of each iteration ("turn") is a safe point: nothing
is half done, so the state saved there is complete.
"""

import ast
import builtins
import sys
from collections.abc import Callable, Iterator
from typing import Any

_LOOK_EVERY = 100  # turns between two checks, if a turn is one step; turns that are whole updates are all checked
_NEVER = sys.maxsize


class Stopped(BaseException):
    """The training was asked to stop. Not an Exception, so that no library catches it."""


class MainLoop:
    """Replaces `range` until the main loop begins, and then counts its turns.

    `begin()` is called once everything is set up; it returns the turn to resume with, or None for the first one.
    `save(turn, step)` is called at a safe point every `save_every` steps, before a stop and at the end,
    `measure(turn, step)` every `measure_every` steps and at the end, `report(step)` often. 0 steps mean never.
    """

    def __init__(
        self,
        loop: ast.For,
        script: dict[str, Any],
        *,
        begin: Callable[[], int | None],
        save: Callable[[int, int], None],
        report: Callable[[int], None],
        save_every: int,
        measure: Callable[[int, int], None] = lambda turn, step: None,
        measure_every: int = 0,
    ) -> None:
        self.turn: int | None = None  # None: the loop has not begun
        self.step = 0  # at the beginning of this turn
        self.is_over = False  # and saved
        self._line = loop.iter.lineno
        # DQN and similar scripts count steps, not updates. Their variable has no value before the first turn.
        self._counts_steps = getattr(loop.target, "id", "") == "global_step"
        self._script = script
        self._begin, self._save, self._report = begin, save, report
        self._save_every = save_every
        self._measure, self._measure_every = measure, measure_every
        self._next_save = self._next_measure = self._next_look = 0
        self._is_stopping = False
        script["range"] = self

    def __call__(self, *bounds: int) -> Any:
        frame = sys._getframe(1)
        if frame.f_globals is not self._script or frame.f_lineno != self._line or frame.f_code.co_name != "<module>":
            return builtins.range(*bounds)
        del self._script["range"]  # from here on the script uses Python's own
        return self._turns(builtins.range(*bounds))

    @property
    def now(self) -> tuple[int, int]:
        """The current turn and its step, also between two safe points."""
        if self._counts_steps and self.turn is not None:
            step = int(self._script["global_step"])
            return step, step
        return self.turn or 0, self.step

    def stop(self) -> None:
        """Request a stop at the next safe point."""
        self._is_stopping = True
        self._next_look = -1

    def _turns(self, turns: range) -> Iterator[int]:
        start = self._begin()
        first = turns.start if start is None else start
        self._next_save = _next(self._save_every, self._step_at(first))
        self._next_measure = _next(self._measure_every, self._step_at(first))
        self._next_look = -1 if self._is_stopping else first
        for turn in builtins.range(first, turns.stop, turns.step):
            # Only one comparison per turn, because a turn of DQN is a single step.
            if turn >= self._next_look:
                self._look(turn)
            yield turn
        self._note(turns.stop)
        self._save(turns.stop, self.step)
        self.is_over = True
        if self._measure_every and not self._is_stopping:
            self._measure(turns.stop, self.step)

    def _look(self, turn: int) -> None:
        self._note(turn)
        if self.step >= self._next_measure and not self._is_stopping:
            self._measure(turn, self.step)
            self._next_measure = _next(self._measure_every, self.step)
        if self._is_stopping or self.step >= self._next_save:
            self._save(turn, self.step)
            self._next_save = _next(self._save_every, self.step)
        if self._is_stopping:
            self.is_over = True
            raise Stopped
        soon = min(turn + _LOOK_EVERY, self._next_save, self._next_measure)
        self._next_look = soon if self._counts_steps else turn + 1
        if self._is_stopping:  # requested between the two lines above
            self._next_look = -1

    def _note(self, turn: int) -> None:
        self.turn, self.step = turn, self._step_at(turn)
        self._report(self.step)

    def _step_at(self, turn: int) -> int:
        return turn if self._counts_steps else int(self._script.get("global_step", turn))


def _next(every: int, step: int) -> int:
    """The first multiple of `every` after `step`."""
    return (step // every + 1) * every if every else _NEVER
