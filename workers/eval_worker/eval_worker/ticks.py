"""One tick of an evaluation: every lane that takes part does one thing at the same time.

The lanes work in threads of their own, and what they did is handled in the order of the lanes: so two runs of one
script print their lines in the same order. Commands that arrive meanwhile are handled at once.
"""

import queue
from collections.abc import Callable, Mapping
from typing import Any

from eval_worker.desk import Desk
from eval_worker.lane import Lane, Outcome

Job = Callable[[], Any]
TakeCommand = Callable[[Mapping[str, Any] | None], None]
_REFRESH_S = 0.25


class Ticks:
    """The inbox of the conductor's thread, and the lanes that are at work."""

    def __init__(self, take_command: TakeCommand, publish: Callable[[int], None], refresh: Callable[[], None]) -> None:
        """`publish` is called with each lane that asks a person, in the order of the lanes; `refresh` after every tick
        and a few times a second while nothing happens."""
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._take_command = take_command
        self._publish = publish
        self._refresh = refresh
        self._outcomes: dict[int, Outcome] = {}
        self._asking: list[int] = []  # lanes that have asked since
        self._silent: list[int] = []  # lanes with people that have neither asked nor finished
        self.desk = Desk(self._asked)

    def command(self, command: Mapping[str, Any] | None) -> None:
        """For the thread that reads commands."""
        self._inbox.put(lambda: self._take_command(command))

    def wait(self, timeout_s: float) -> bool:
        """Handle the next thing that happens; whether there was one in this time."""
        try:
            happened = self._inbox.get(timeout_s > 0, timeout_s)
        except queue.Empty:
            return False
        happened()
        return True

    def idle(self) -> None:
        """Wait until something happens, and handle it."""
        while not self.wait(_REFRESH_S):
            self._refresh()

    def run(self, jobs: Mapping[Lane, Job], with_people: set[int]) -> list[Outcome]:
        """Run the jobs at the same time; the outcomes in the order of the lanes."""
        self._outcomes = {}
        self._silent = sorted(lane.index for lane in jobs if lane.index in with_people)
        self.desk.forget_interrupts()
        for lane, job in jobs.items():
            lane.run(job, self._report)
        while len(self._outcomes) < len(jobs):
            self.idle()
        self._refresh()
        return [self._outcomes[index] for index in sorted(self._outcomes)]

    def _report(self, outcome: Outcome) -> None:
        self._inbox.put(lambda: self._finished(outcome))

    def _asked(self, lane: int) -> None:
        self._inbox.put(lambda: self._publish_in_order(lane))

    def _finished(self, outcome: Outcome) -> None:
        index = outcome.lane.index
        self._outcomes[index] = outcome
        self._heard(index)

    def _publish_in_order(self, lane: int) -> None:
        self._asking.append(lane)
        self._heard(lane)

    def _heard(self, index: int) -> None:
        """A lane has asked or finished: questions that waited for it can be published."""
        if index in self._silent:
            self._silent.remove(index)
        first_silent = self._silent[0] if self._silent else None
        for lane in sorted(self._asking):
            if first_silent is None or lane < first_silent:
                self._asking.remove(lane)
                self._publish(lane)
