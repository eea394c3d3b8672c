"""What a person does with the lanes of an evaluation: keys and buttons become commands. No toolkit, no daemon."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mosaic.client.evaluation import act_command
from mosaic.present.lane_keys import Questions, identity, key_map
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client.evaluation_state import Answer, EvaluationState
    from mosaic.client.lanes import ActionRequest, Choice

Command = dict[str, Any]

RATES = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # steps per second
FINISH = "finish"
PLAYING = "playing"  # the state of an evaluation
HIGHEST_SEED = 2**31 - 1


@dataclass
class LaneDesk:
    """1. The keys of the asked lane's actions come first. 2. A key of an action never becomes a command by accident:
    while it plays, it does nothing when nobody is asked."""

    evaluation: "EvaluationState"
    is_manual: bool = True  # else a script plays, and only people's lanes take keys
    chosen: int | None = None  # the lane for step and reset; None: all
    rate: float = 5.0
    note: str = ""  # about the last key or command
    wants_to_finish: bool = False  # it ends the evaluation, so the view asks first
    questions: Questions = field(init=False)
    _last_keys: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        self.questions = Questions(self.evaluation)

    @property
    def request(self) -> "ActionRequest | None":
        """What is asked now: in the chosen lane if it asks, else the oldest request."""
        asked = self.questions.open()
        return next((one for one in asked if one.lane == self.chosen), asked[0] if asked else None)

    @property
    def actions(self) -> "dict[str, Choice]":
        """The actions by their keys."""
        request = self.request
        return key_map(request.choices) if request else {}

    @property
    def is_playing(self) -> bool:
        return self.evaluation.state == PLAYING

    def takes(self, key: str) -> bool:
        """Whether `press` would do something with the key."""
        return bool(self._action_key(key)) or key in self._last_keys or (self.is_manual and key.lower() in KEYS)

    def press(self, key: str) -> list[Command]:
        """Take a key; returns the commands to send."""
        self.note = ""
        if action := self._action_key(key):
            request = self.request
            assert request is not None
            return self.act(request, self.actions[action].value)
        if key in self._last_keys and (self.is_playing or not self.is_manual):
            self.note = "Nobody is asked for an action at the moment."
            return []
        return self._drive(key.lower()) if self.is_manual else []

    def act(self, request: "ActionRequest", action: Any) -> list[Command]:
        """Answer a request, once."""
        if identity(request) not in [identity(one) for one in self.questions.open()]:
            return []
        self._last_keys = frozenset(key_map(request.choices))
        command = act_command(request, action)
        self.questions.sent(command)
        return [command]

    def step(self) -> list[Command]:
        return [{"cmd": "step", "count": 1, **self._here}]

    def play_or_pause(self) -> list[Command]:
        return [{"cmd": "pause"} if self.is_playing else {"cmd": "play", "rate": self.rate}]

    def reset(self, seed: str = "") -> list[Command]:
        """Begin the episode again, or one with this seed."""
        if not seed.strip():
            return [{"cmd": "reset", **self._here}]
        if not seed.strip().isdecimal() or int(seed) > HIGHEST_SEED:
            self.note = f'seed: must be an integer from 0 to {HIGHEST_SEED:,}, not "{printable(seed.strip())}".'
            return []
        return [{"cmd": "reset", **self._here, "seed": int(seed)}]

    def next(self) -> list[Command]:
        """Begin the next episode in the lanes that have finished theirs."""
        return [{"cmd": "start"}]

    def change_rate(self, rate: float) -> list[Command]:
        self.rate = rate
        return [{"cmd": "play", "rate": rate}] if self.is_playing and self.is_manual else []

    def choose(self, lane: int) -> None:
        """Choose a lane for step and reset; the same one again: all lanes."""
        if lane >= len(self.evaluation.lanes):
            self.note = f"There is no lane {lane}."
        else:
            self.chosen = None if self.chosen == lane else lane

    def hear(self, command: Mapping[str, Any], answer: "Answer") -> None:
        """Take the conductor's answer: a refusal is shown, and a refused action can be given again."""
        if not answer.ok:
            self.note = printable(answer.message) or f"{answer.cmd} was refused."
            self.questions.refused(command)

    @property
    def _here(self) -> Command:
        return {} if self.chosen is None else {"lanes": [self.chosen]}

    def _action_key(self, key: str) -> str:
        """The key as the map has it: with Caps Lock on, letters arrive as capitals."""
        actions = self.actions
        return next((each for each in (key, key.lower()) if each in actions), "")

    def _drive(self, key: str) -> list[Command]:
        if key == " ":
            return self.play_or_pause()
        if key == "s":
            return self.step()
        if key == "r":
            return self.reset()
        if key == "n":
            return self.next()
        if key in ("+", "=", "-"):
            return self.change_rate(next_rate(self.rate, -1 if key == "-" else 1))
        if key == "f":
            self.wants_to_finish = True
        elif key.isdecimal():
            self.choose(int(key))
        return []


KEYS = frozenset({" ", "s", "r", "n", "+", "=", "-", "f", *"0123456789"})


def next_rate(rate: float, by: int) -> float:
    """The next faster or slower rate of the list."""
    place = min(range(len(RATES)), key=lambda at: abs(RATES[at] - rate))
    return RATES[max(0, min(place + by, len(RATES) - 1))]
