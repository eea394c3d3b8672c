"""The actions that a model may choose in one decision, and those of a discrete space, which have names."""

import re
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple, Protocol

from llm_worker.config import FIRST, NOOP, RANDOM

NOOPS = ("noop", "no-op", "no_op", "stay", "still", "done", "wait", "pass", "nothing")
MOST_ENUMERATED = 250  # hosted endpoints limit how long an enumeration may be
_SHOWN = 40


class IllegalAnswer(Exception):
    """An answer without a legal action. `kind` is counted, the text is sent to the model."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Choice(NamedTuple):
    value: int
    name: str


class Actions(Protocol):
    """What a model can choose from in one decision."""

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the field `action`."""

    @property
    def is_limited(self) -> bool:
        """Whether some of the actions are not allowed now."""

    def listed(self) -> str:
        """The actions that are allowed now, as the prompt lists them."""

    def all_listed(self) -> str:
        """All actions."""

    def parse(self, value: Any) -> Any:
        """The action that a field's value names, or IllegalAnswer."""

    def find(self, text: str) -> Any:
        """The one action that a text names, or IllegalAnswer."""

    def fallback(self, policy: str, random: Random) -> tuple[str, Any]:
        """The policy that was used and its action."""

    def name_of(self, action: Any) -> Any:
        """The action as a model writes it."""


class Named:
    """The actions of a discrete space. `legal`: those that are allowed now."""

    def __init__(self, choices: Sequence[Choice], legal: Sequence[Choice] | None = None) -> None:
        self.choices = tuple(choices)
        self.legal = self.choices if legal is None else tuple(legal)
        self._by_name = {plain_name(choice.name): choice for choice in self.choices}

    @property
    def is_limited(self) -> bool:
        return len(self.legal) < len(self.choices)

    def schema(self) -> dict[str, Any]:
        if len(self.legal) <= MOST_ENUMERATED:
            return {"type": "string", "enum": [choice.name for choice in self.legal]}
        return {"type": "string"}

    def listed(self) -> str:
        return _listed(self.legal)

    def all_listed(self) -> str:
        return _listed(self.choices)

    def parse(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise IllegalAnswer("wrong_type", f'"action" must be one of: {self.listed()}.')
        choice = self._by_name.get(plain_name(str(value))) or self._by_number(str(value))
        if choice is None:
            raise IllegalAnswer(
                "unknown_action", f'There is no action "{_short(value)}". Choose from: {self.listed()}.'
            )
        return self._allowed(choice)

    def find(self, text: str) -> int:
        plain = f" {plain_name(text)} "
        named = {choice.value: choice for name, choice in self._by_name.items() if f" {name} " in plain}
        # "turn left" also contains "left": the longer name is meant.
        longest = [one for one in named.values() if not any(_is_within(one, other) for other in named.values())]
        if not longest:
            raise IllegalAnswer("no_action", f"The answer names no action. Choose from: {self.listed()}.")
        if len(longest) > 1:
            raise IllegalAnswer("several_actions", f"The answer names several actions. Choose one of: {self.listed()}.")
        return self._allowed(longest[0])

    def fallback(self, policy: str, random: Random) -> tuple[str, int]:
        idle = noop_of(self.legal)
        if policy == NOOP and idle is not None:
            return NOOP, idle.value
        if policy == FIRST:
            return FIRST, self.legal[0].value
        return RANDOM, random.choice(self.legal).value

    def name_of(self, action: Any) -> str:
        return next((choice.name for choice in self.choices if choice.value == action), str(action))

    def _by_number(self, text: str) -> Choice | None:
        return next((choice for choice in self.choices if str(choice.value) == text.strip()), None)

    def _allowed(self, choice: Choice) -> int:
        if choice not in self.legal:
            raise IllegalAnswer("masked_action", f"{choice.name} is not allowed now. Choose from: {self.listed()}.")
        return choice.value


def _listed(choices: Sequence[Choice]) -> str:
    if len(choices) > MOST_ENUMERATED and all(choice.name == str(choice.value) for choice in choices):
        return f"{len(choices)} numbers from {choices[0].value} to {choices[-1].value}"
    return ", ".join(choice.name for choice in choices)


def noop_of(choices: Sequence[Choice]) -> Choice | None:
    """The action that does nothing, by its name."""
    return next((choice for name in NOOPS for choice in choices if plain_name(choice.name) == plain_name(name)), None)


def plain_name(name: str) -> str:
    """Upper and lower case, punctuation and underscores make no difference."""
    return " ".join(re.findall(r"[^\W_]+", name.lower())) or name.strip()


def _is_within(one: Choice, other: Choice) -> bool:
    return one != other and f" {plain_name(one.name)} " in f" {plain_name(other.name)} "


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
