"""The state of the screen of an evaluation, and what its keys do. It knows neither the terminal nor the daemon."""

from dataclasses import dataclass, field
from typing import Any

from mosaic.cli.eval_commands import ASK_FOR_HELP, QUIT, parse_command
from mosaic.client.evaluation import act_command
from mosaic.client.evaluation_state import Answer, EvaluationState
from mosaic.client.lanes import ActionRequest, Choice
from mosaic.model.errors import MosaicError
from mosaic.present.lane_desk import next_rate
from mosaic.present.lane_keys import Questions, key_map

Command = dict[str, Any]

LEAVE, FINISH, CANCEL = "leave", "finish", "cancel"


@dataclass
class ScreenState:
    """What is shown beside the lanes, and the mode that decides what a key does."""

    evaluation: EvaluationState
    is_manual: bool = True  # else a script plays, and only people's lanes take keys
    name: str = ""  # the operator or agent for whom this terminal acts; empty: for anybody
    chosen: int | None = None  # the lane that keys apply to; None: all
    rate: float = 5.0
    is_help: bool = False
    is_asked: bool = False  # how to leave
    typed: str | None = None  # a command that is being typed
    note: str = ""  # shown until the next key
    leaves: str = ""  # LEAVE, FINISH or CANCEL once the user has decided
    questions: Questions = field(init=False)

    def __post_init__(self) -> None:
        self.questions = Questions(self.evaluation, self.name)

    @property
    def request(self) -> ActionRequest | None:
        """What this terminal is asked now."""
        return next(iter(self.questions.open()), None)

    @property
    def actions(self) -> dict[str, Choice]:
        """The actions by their keys."""
        return key_map(self.request.choices) if self.request else {}

    def press(self, key: str) -> list[Command]:
        """Take a key; returns the commands to send."""
        self.note = ""
        if key == "closed":
            self.leaves = LEAVE
        elif self.typed is not None:
            return self._type(key)
        elif self.is_asked:
            self._answer(key)
        elif self.is_help:
            self.is_help = False
        elif key in self.actions:
            return self._act(key)
        else:
            return self._command(key)
        return []

    def hear(self, command: Any, answer: Answer) -> None:
        """Take the conductor's answer: a refusal is shown, and a refused action can be given again."""
        if not answer.ok:
            self.note = answer.message or f"{answer.cmd} was refused."
            self.questions.refused(command)

    def _act(self, key: str) -> list[Command]:
        request = self.request
        assert request is not None
        command = act_command(request, self.actions[key].value)
        self.questions.sent(command)
        return [command]

    def _command(self, key: str) -> list[Command]:
        if key in ("q", "escape"):
            self.is_asked = True
        elif key == "?":
            self.is_help = True
        elif key == ":":
            self.typed = ""
        elif key.isdecimal():
            self._choose(int(key))
        elif self.is_manual:
            return self._drive(key)
        elif self.request and len(key) == 1:
            self.note = f"{key!r} is not the key of an action."
        return []

    def _drive(self, key: str) -> list[Command]:
        """The keys of a manual evaluation."""
        here = {} if self.chosen is None else {"lanes": [self.chosen]}
        if key in (" ", "s"):
            return [{"cmd": "step", "count": 1, **here}]
        if key == "p":
            is_playing = self.evaluation.state == "playing"
            return [{"cmd": "pause"} if is_playing else {"cmd": "play", "rate": self.rate}]
        if key == "r":
            return [{"cmd": "reset", **here}]
        if key == "n":
            return [{"cmd": "start"}]
        if key in ("+", "=", "-"):
            return self._change_rate(-1 if key == "-" else 1)
        return []

    def _change_rate(self, by: int) -> list[Command]:
        self.rate = next_rate(self.rate, by)
        return [{"cmd": "play", "rate": self.rate}] if self.evaluation.state == "playing" else []

    def _choose(self, lane: int) -> None:
        if lane >= len(self.evaluation.lanes):
            self.note = f"There is no lane {lane}."
        else:
            self.chosen = None if self.chosen == lane else lane

    def _answer(self, key: str) -> None:
        """The answer to the question how to leave."""
        ways = {"l": LEAVE, "d": LEAVE, **({"f": FINISH} if self.is_manual else {"c": CANCEL})}
        self.leaves = ways.get(key, "")
        self.is_asked = False

    def _type(self, key: str) -> list[Command]:
        assert self.typed is not None
        if key == "enter":
            line, self.typed = self.typed, None
            return self._typed_command(line)
        if key == "escape" or (key == "back" and not self.typed):
            self.typed = None
        elif key == "back":
            self.typed = self.typed[:-1]
        elif len(key) == 1 and key.isprintable():
            self.typed += key
        return []

    def _typed_command(self, line: str) -> list[Command]:
        if not line.strip():
            return []
        try:
            command = parse_command(line, self.evaluation, self.questions)
        except MosaicError as error:
            self.note = str(error)
            return []
        if command["cmd"] == QUIT:
            self.leaves = LEAVE
        elif command["cmd"] == ASK_FOR_HELP:
            self.is_help = True
        elif command["cmd"] == "finish":
            self.leaves = FINISH
        else:
            if command["cmd"] == "act":
                self.questions.sent(command)
            return [command]
        return []
