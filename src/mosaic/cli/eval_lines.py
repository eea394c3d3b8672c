"""An evaluation driven by lines: one command per line on stdin, answers as lines or as JSON on stdout."""

import json
import os
import select
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mosaic.cli.eval_commands import ASK_FOR_HELP, HELP, QUIT, parse_command
from mosaic.cli.eval_session import Session
from mosaic.cli.follow import TICK_S
from mosaic.cli.inbox import Inbox
from mosaic.model.errors import MosaicError
from mosaic.present.lane_keys import Questions, identity
from mosaic.present.text import number, printable

if TYPE_CHECKING:
    from mosaic.client import Run, TrainerClient
    from mosaic.client.lanes import ActionRequest, LaneState

LONGEST = 64 * 1024  # characters of a line


def drive_by_lines(
    client: "TrainerClient", run: "Run", is_manual: bool, name: str = "", as_json: bool = False
) -> "tuple[Run, bool]":
    """Take commands until the evaluation is over. Returns the run, and whether it was left running."""
    with Inbox(client) as inbox:
        session = Session(inbox, run)
        return session.run, _Driver(session, inbox, is_manual, name, as_json).drive()


class _Driver:
    def __init__(self, session: Session, inbox: Inbox, is_manual: bool, name: str, as_json: bool) -> None:
        self._session, self._inbox = session, inbox
        self._questions = Questions(session.evaluation, name)
        self._is_manual, self._as_json = is_manual, as_json
        self._lines = _Lines(sys.stdin.fileno())
        self._reported: set[Any] = set()  # requests that were printed
        self._failures: dict[int, int] = {}  # printed ones, by lane
        self._warned = 0
        self._has_begun = self._is_ending = False

    def drive(self) -> bool:
        """Returns whether the evaluation was left running."""
        while not self._session.is_over:
            may_read = self._may_read()
            files = [self._inbox.fileno(), *([self._lines.fileno()] if may_read and not self._lines.is_ready else [])]
            select.select(files, [], [], 0 if may_read and self._lines.is_ready else TICK_S)
            self._session.refresh()
            self._report()
            if self._may_read() and (line := self._lines.next()) is not None and self._leaves(line):
                return True
        self._report()
        return False

    def _may_read(self) -> bool:
        """The next command waits until this one is done, unless a lane waits for a person."""
        if not self._has_begun or self._is_ending or self._lines.is_at_end:
            return False
        return not self._session.is_busy or bool(self._questions.open())

    def _leaves(self, line: str | None) -> bool:
        """Take a line; returns whether the user leaves."""
        if line == "":  # the end of the input
            # A script plays on without us; a manual evaluation would only wait.
            return self._is_manual
        if not line or not line.strip() or line.lstrip().startswith("#"):
            return False
        try:
            command = parse_command(line, self._session.evaluation, self._questions)
        except MosaicError as error:
            self._print({"type": "error", "message": str(error)}, f"error: {error}")
            return False
        if command["cmd"] == ASK_FOR_HELP:
            self._print({"type": "help", "commands": HELP}, "\n".join(f"{key:<28}{text}" for key, text in HELP.items()))
        elif command["cmd"] != QUIT:
            self._is_ending = command["cmd"] == "finish"
            if command["cmd"] == "act":
                self._questions.sent(command)
            self._session.send(command)
        return bool(command["cmd"] == QUIT)

    # What is printed

    def _report(self) -> None:
        """Print what is new."""
        self._report_beginning()
        self._report_problems()
        while self._session.answered:
            self._report_answer(*self._session.answered.popleft())
        for request in self._questions.open():
            if identity(request) not in self._reported:
                self._reported.add(identity(request))
                self._print({"type": "request", **asdict(request)}, describe_request(request))

    def _report_beginning(self) -> None:
        evaluation, run_id = self._session.evaluation, self._session.run.run_id
        if self._has_begun or not evaluation.lanes:
            return
        self._has_begun = True
        lanes = ", ".join(f"{lane.index} {printable(lane.name)}" for lane in evaluation.lanes)
        plain = {"type": "started", "run_id": run_id, "env_id": evaluation.env_id}
        self._print(
            {**plain, "lanes": [lane.to_dict() for lane in evaluation.lanes]},
            f"Run {run_id}: {printable(evaluation.env_id)}, lanes {lanes}",
        )

    def _report_problems(self) -> None:
        evaluation = self._session.evaluation
        for warning in evaluation.warnings[self._warned :]:
            self._print({"type": "warning", "message": warning}, f"warning: {printable(warning)}")
        self._warned = len(evaluation.warnings)
        for lane in evaluation.lanes:
            if lane.failures > self._failures.get(lane.index, 0):
                self._failures[lane.index] = lane.failures
                plain = {"type": "failure", "lane": lane.index, "reason": lane.failure}
                self._print(plain, f"lane {lane.index} failed: {printable(lane.failure)}")

    def _report_answer(self, command: Any, answer: Any) -> None:
        lanes = self._session.evaluation.lanes
        plain = {"type": "answer", "cmd": command["cmd"], "ok": answer.ok, "message": answer.message}
        if not answer.ok:
            self._is_ending = False
            self._questions.refused(command)
            self._print({**plain, "lanes": []}, f"refused: {command['cmd']}: {printable(answer.message)}")
        else:
            text = "\n".join(map(describe_lane, lanes)) or f"{command['cmd']}: done"
            self._print({**plain, "lanes": [lane.to_dict() for lane in lanes]}, text)

    def _print(self, plain: dict[str, Any], text: str) -> None:
        print(json.dumps(plain) if self._as_json else text, flush=True)


def describe_lane(lane: "LaneState") -> str:
    """`0 ppo  playing  seed 3  step 5  forward  reward 0  return 0.5`"""
    action = lane.action_name or ("-" if lane.action is None else str(lane.action))
    parts = [
        f"{lane.index} {printable(lane.name)}",
        lane.state,
        f"seed {'-' if lane.seed is None else lane.seed}",
        f"step {lane.step_index + 1}",
        printable(action),
        f"reward {number(lane.reward)}",
        f"return {number(lane.episode_return)}",
    ]
    said = [printable(text) for text in (lane.text, lane.reason) if text]
    return "  ".join([*parts, *said])


def describe_request(request: "ActionRequest") -> str:
    names = ", ".join(printable(choice.name) for choice in request.choices) or "a value of the action space"
    limit = "" if request.deadline_s is None else f" within {request.deadline_s:g} s"
    asked = f"lane {request.lane} asks {printable(request.operator or request.agent_id)} for an action{limit}: {names}"
    view = "\n".join(printable(line) for line in request.text.splitlines())
    return f"{view}\n{asked}" if view else asked


class _Lines:
    """The lines of a file descriptor, without blocking and without reading ahead of `select`."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._text = b""
        self.is_at_end = False

    def fileno(self) -> int:
        return self._fd

    @property
    def is_ready(self) -> bool:
        return b"\n" in self._text

    def next(self) -> str | None:
        """The next line; None if there is none yet, an empty text at the end of the input."""
        if not self.is_ready and select.select([self._fd], [], [], 0)[0]:
            read = os.read(self._fd, LONGEST)
            self._text += read if read else b"\n" if self._text else b""
            if not read and not self._text:
                self.is_at_end = True
                return ""
        if not self.is_ready:
            return None
        line, _, self._text = self._text.partition(b"\n")
        return line.decode(errors="replace") + "\n"
