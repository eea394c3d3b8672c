"""Where people are asked for actions: lanes ask here and wait, commands answer.

A question gets its number, and its time starts to run, when it is published. The conductor publishes the questions of
one step in the order of the lanes.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_worker.game import Interrupted, LaneFailed


class ActionRefused(Exception):
    """An answer that cannot be used. The text says what can."""


@dataclass
class Question:
    """One person is asked for one action."""

    lane: int
    agent_id: str
    operator: str
    episode_index: int
    step_index: int
    text: str
    actions: Sequence[Mapping[str, Any]] | None  # value, name, key; None: the action space has no list
    mask: Sequence[int] | None
    time_limit_s: float | None
    request: int = 0  # its number; 0: not published
    deadline: float | None = None
    action: Any = None
    is_answered: bool = False
    asked_at: float = field(default_factory=time.monotonic)

    @property
    def is_open(self) -> bool:
        return self.request > 0 and not self.is_answered

    def choices(self) -> list[Mapping[str, Any]]:
        """What is allowed now, of an action space that has a list."""
        return [
            action for place, action in enumerate(self.actions or ()) if self.mask is None or _is_set(self.mask, place)
        ]

    def chosen(self, given: Any) -> Any:
        """The action for a value or a name. ActionRefused if there is none."""
        if self.actions is None:
            return given
        for action in self.choices():
            if given == action.get("name") or (given == action.get("value") and type(given) is type(action["value"])):
                return action["value"]
        names = ", ".join(str(action.get("name") or action.get("value")) for action in self.choices())
        raise ActionRefused(f"action: {given!r} is not an action of {self.agent_id} now. Choose from: {names}.")

    def expiry_reason(self) -> str:
        return f"operator {self.operator}: no action in {self.time_limit_s:g} s"


class Desk:
    """Lanes' threads call `ask_all`; every other method belongs to the conductor's thread."""

    def __init__(self, asked: Callable[[int], None]) -> None:
        """`asked` is called with each lane that asks, in that lane's thread."""
        self._asked = asked
        self._condition = threading.Condition()
        self._questions: dict[int, list[Question]] = {}  # by lane
        self._interrupted: set[int] = set()
        self._closed = ""
        self._last_request = 0

    def ask_all(self, questions: list[Question]) -> dict[str, Any]:
        """The actions by agent. LaneFailed when a person's time is over, Interrupted when a command ends it."""
        lane = questions[0].lane
        with self._condition:
            self._questions[lane] = questions
            self._asked(lane)
            try:
                while not all(question.is_answered for question in questions):
                    self._raise_if_over(lane, questions)
                    self._condition.wait(_time_left(questions))
            finally:
                del self._questions[lane]
        return {question.agent_id: question.action for question in questions}

    def _raise_if_over(self, lane: int, questions: list[Question]) -> None:
        if lane in self._interrupted:
            raise Interrupted
        if self._closed:
            raise LaneFailed(f"operator {questions[0].operator}: {self._closed}")
        now = time.monotonic()
        for question in questions:
            if question.is_open and question.deadline is not None and now >= question.deadline:
                raise LaneFailed(question.expiry_reason())

    def publish(self, lane: int) -> list[Question]:
        """Number the lane's questions that have no number yet, and start their time."""
        with self._condition:
            fresh = [question for question in self._questions.get(lane, ()) if not question.request]
            for question in fresh:
                self._last_request += 1
                question.request = self._last_request
                if question.time_limit_s is not None:
                    question.deadline = time.monotonic() + question.time_limit_s
            self._condition.notify_all()
        return fresh

    def open_questions(self) -> list[Question]:
        with self._condition:
            return [question for questions in self._questions.values() for question in questions if question.is_open]

    def answer(self, lane: int, agent_id: str | None, request: int, given: Any) -> Question:
        """Answer a question; returns it. ActionRefused if there is none such, or the action is not one."""
        with self._condition:
            question = self._find(lane, agent_id, request)
            question.action = question.chosen(given)
            question.is_answered = True
            self._condition.notify_all()
            return question

    def _find(self, lane: int, agent_id: str | None, request: int) -> Question:
        pending = [question for question in self._questions.get(lane, ()) if question.is_open]
        if not pending:
            raise ActionRefused(f"lane: lane {lane} does not wait for an action.")
        for question in pending:
            if question.request == request and agent_id in (None, question.agent_id):
                return question
        numbers = ", ".join(f"{question.request} ({question.agent_id})" for question in pending)
        raise ActionRefused(f"request: {request} is not what lane {lane} waits for now. It waits for: {numbers}.")

    def interrupt(self, lanes: Iterable[int]) -> None:
        """End the waiting of these lanes."""
        with self._condition:
            # Also of lanes that have not asked yet: they may be about to.
            self._interrupted.update(lanes)
            self._condition.notify_all()

    def forget_interrupts(self) -> None:
        with self._condition:
            self._interrupted.clear()

    def close(self, reason: str) -> None:
        """Nobody can answer any more: every question, also a later one, fails with this reason."""
        with self._condition:
            self._closed = reason
            self._condition.notify_all()


def _is_set(mask: Sequence[int], place: int) -> bool:
    return place < len(mask) and bool(mask[place])


def _time_left(questions: Iterable[Question]) -> float | None:
    deadlines = [question.deadline for question in questions if question.is_open and question.deadline is not None]
    return min(max(0.0, min(deadlines) - time.monotonic()), threading.TIMEOUT_MAX) if deadlines else None
