"""The conductor: lanes in lock-step, tick by tick, until the script is done or a command ends it.

    waiting ──start──▶ paused ──play──▶ playing ──pause──▶ paused          manual
                         └── step: some ticks, then paused again
    playing ─────────────────────────────────────────────▶ done            script

One thread decides everything here; lanes wait for their processes in threads of their own (ticks.py).
"""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_worker.lane import Lane, Outcome
from eval_worker.logbook import Logbook
from eval_worker.telemetry import DONE, PLAYING, WAITING, Telemetry
from eval_worker.ticks import Ticks

Command = Mapping[str, Any]
_ENDS_STEPS = ("pause", "finish")
OVER = "The evaluation is over."
_LONGEST_WAIT_S = 3600.0  # at once; a lock refuses a wait of centuries, which a pace of nearly 0 asks for
NOBODY = "nobody can answer, because the evaluation has no input"


@dataclass
class Steps:
    """A `step` command that is being executed."""

    command: Command
    lanes: list[Lane]
    left: int
    has_begun: bool = False
    is_answered: bool = False


class Conductor:
    """Plays all lanes to their ends. `lanes`, `logbook` and the rest are built by the runtime."""

    def __init__(self, lanes: Sequence[Lane], logbook: Logbook, telemetry: Telemetry, ticks: Ticks) -> None:
        self.lanes = list(lanes)
        self.logbook = logbook
        self.telemetry = telemetry
        self.ticks = ticks
        self.is_manual = False
        self.pace = 0.0
        self.state = WAITING
        self.steps: Steps | None = None
        self.is_ending = False
        self.is_busy = False  # a tick is in progress
        self.people: set[int] = set()  # lanes in which people play
        self.deferred: deque[Command] = deque()
        self.execute: Callable[[Command], None] = lambda command: None  # of orders.Orders; set by the runtime

    def run(self) -> None:
        """Return when everything is done. What is finished is then in the logbook."""
        if self.is_manual:
            self._replay()
            self.change(WAITING)
        else:
            self.change(PLAYING)
        while not self.is_ending:
            self._turn()
        for command in self.deferred:
            self.telemetry.answered(command, False, OVER, {})
        self.logbook.compare(at_end=True)
        self.change(DONE)

    def change(self, state: str) -> None:
        if state != self.state or state in (WAITING, DONE):
            self.telemetry.state(state)
        self.state = state

    def publish(self, lane: int) -> None:
        """A lane asks people for actions."""
        for question in self.ticks.desk.publish(lane):
            self.telemetry.requested(question)
            # A `step` does not wait for a person, whose own command is answered after it.
            self._answer_steps(f"{question.operator} is asked for an action.")

    def begin(self, lanes: Sequence[Lane]) -> None:
        """Begin an episode in each of these lanes that has none."""
        starting = [lane for lane in lanes if lane.can_begin]
        jobs = {lane: lane.next_episode() for lane in starting}
        for lane in starting:
            self.logbook.beginning(lane)
        for outcome in self._together(jobs):
            if outcome.reason:
                self.logbook.failed(outcome, began=False)
            else:
                self.logbook.opened(outcome.lane, outcome.value)
        if starting:
            self.logbook.compare()

    def stop_steps(self, message: str) -> None:
        """End a `step` command after the step that is in progress."""
        if self.steps is not None:
            self.steps.left = 0
            self._answer_steps(message)

    def _turn(self) -> None:
        """One turn of the main loop."""
        while self.ticks.wait(0):
            pass
        if self.is_ending:
            return
        if self.deferred and self._may_execute(self.deferred[0]):
            self.execute(self.deferred.popleft())
        elif self.steps is not None:
            self._step()
        elif self.state == PLAYING:
            self._play()
        else:
            self.ticks.idle()

    def _may_execute(self, command: Command) -> bool:
        """Whether a command need not wait until the steps of a `step` command are taken."""
        return self.steps is None or (self.steps.has_begun and command.get("cmd") in _ENDS_STEPS)

    def _play(self) -> None:
        if not any(lane.can_play for lane in self.lanes):
            if self.is_manual:
                self.change(WAITING)
            else:
                self.is_ending = True
            return
        began = time.monotonic()
        is_replay = all(lane.has_past for lane in self.lanes if lane.can_play)
        self._tick(self.lanes)
        if self.pace and not is_replay:
            self._rest(began + 1 / self.pace)

    def _rest(self, until: float) -> None:
        while self.state == PLAYING and not self.is_ending and not self.deferred:
            left = until - time.monotonic()
            if left <= 0:
                return
            self.ticks.wait(min(left, _LONGEST_WAIT_S))

    def _step(self) -> None:
        steps = self.steps
        assert steps is not None
        steps.has_begun = True
        self._tick(steps.lanes)
        steps.left -= 1
        if steps.left <= 0 or not any(lane.can_play for lane in steps.lanes):
            self._answer_steps("")
            self.steps = None

    def _tick(self, lanes: Sequence[Lane]) -> None:
        self.begin(lanes)
        if self.is_ending:
            return
        playing = [lane for lane in lanes if lane.episode is not None]
        for outcome in self._together({lane: lane.step() for lane in playing}):
            self._handle(outcome)

    def _handle(self, outcome: Outcome) -> None:
        if outcome.is_interrupted:
            return
        if outcome.is_forfeit:
            self.logbook.forfeited(outcome)
        elif outcome.reason:
            self.logbook.failed(outcome, began=True)
        else:
            self.logbook.turned(outcome.lane, outcome.value)

    def _together(self, jobs: Mapping[Lane, Any]) -> list[Outcome]:
        self.is_busy = True
        try:
            return self.ticks.run(jobs, self.people)
        finally:
            self.is_busy = False

    def _replay(self) -> None:
        """Print what an earlier run of a manual evaluation has finished."""
        while any(lane.has_past for lane in self.lanes):
            lanes = [lane for lane in self.lanes if lane.has_past]
            for lane in lanes:
                lane.wake()
            self._tick(lanes)

    def _answer_steps(self, message: str) -> None:
        if self.steps is not None and not self.steps.is_answered:
            self.steps.is_answered = True
            self.telemetry.answered(self.steps.command, True, message, {})
