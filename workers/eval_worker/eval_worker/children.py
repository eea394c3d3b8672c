"""The processes of a lane, and how they are asked. What they fail with becomes a lane's reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mosaic_sdk import names
from mosaic_sdk.operators.child import Child, ChildDied, ChildError, Variables
from mosaic_sdk.operators.operator import OperatorError

from eval_worker.game import Forfeit, Hopeless, LaneFailed

START_LIMIT_S = 600.0  # the first answer: importing torch takes minutes on a busy machine
FORFEIT = "forfeit"  # kind of an error: the operator gives the episode up
HOST_LIMIT_S = 120.0  # one step of an environment


class Refused(LaneFailed):
    """The child answered with an error, and lives on."""


@dataclass(frozen=True)
class Command:
    """How a child is started."""

    argv: Sequence[str]
    env: Variables  # what differs from this process's environment
    cwd: str

    def with_env(self, more: Mapping[str, str]) -> "Command":
        return Command(self.argv, {**self.env, **more}, self.cwd)


class Asked:
    """A child that is started when it is first asked, and anew after it died."""

    def __init__(self, who: str, command: Command, timeout_s: float | None) -> None:
        """`who`: its name in reasons, such as "operator ppo"."""
        self.who = who
        self._command = command
        self._timeout_s = timeout_s
        self._child: Child | None = None
        self._has_answered = False
        self._is_closed = False

    def ask(self, wanted: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer, of the wanted type. LaneFailed with the reason if there is none."""
        try:
            answer = self._started().ask(message, self._limit_s())
        except OperatorError as error:
            raise LaneFailed(f"{self.who}: {_reason(error)}") from None
        was_new, self._has_answered = not self._has_answered, True
        try:
            return self._checked(answer, wanted)
        except Refused as error:
            if was_new and self._has_given_up():
                raise Hopeless(str(error)) from None
            raise

    def read(self, wanted: str) -> dict[str, Any]:
        """A further answer to the last message."""
        try:
            answer = self._started().read(self._limit_s())
        except OperatorError as error:
            raise LaneFailed(f"{self.who}: {_reason(error)}") from None
        return self._checked(answer, wanted)

    def close(self, for_good: bool = False, grace_s: float = 0.0) -> None:
        """`for_good`: it is not started again. `grace_s`: how long it may take to end by itself."""
        self._is_closed = self._is_closed or for_good
        child, self._child, self._has_answered = self._child, None, False
        if child is not None:
            child.close(grace_s)

    def _has_given_up(self) -> bool:
        """Whether it ends after its error, because its config cannot be used (rule 4 of mosaic_sdk.interactive)."""
        try:
            self._started().ask({"cmd": names.PING}, HOST_LIMIT_S)
        except ChildDied:
            return True
        except OperatorError:
            pass  # it hangs, which says nothing about the next one
        return False

    def _started(self) -> Child:
        if self._is_closed:
            raise LaneFailed(f"{self.who}: the evaluation has ended")
        if self._child is None:
            name = self.who.rpartition(" ")[2]
            self._child = Child(self._command.argv, name=name, env=self._command.env, cwd=self._command.cwd)
        return self._child

    def _limit_s(self) -> float | None:
        if self._has_answered or self._timeout_s is None:
            return self._timeout_s
        return max(self._timeout_s, START_LIMIT_S)

    def _checked(self, answer: dict[str, Any], wanted: str) -> dict[str, Any]:
        kind = answer[names.TYPE_KEY]
        if kind == names.ERROR:
            reason = f"{self.who}: {answer.get('message') or 'an error without a message'}"
            if answer.get("kind") == FORFEIT:
                raise Forfeit(reason)
            raise LaneFailed(reason) if answer.get("fatal") else Refused(reason)
        if kind != wanted:
            raise LaneFailed(f"{self.who}: answered {kind!r} where {wanted!r} was expected")
        return answer


def _reason(error: OperatorError) -> str:
    return error.reason if isinstance(error, ChildError) else str(error)
