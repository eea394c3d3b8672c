"""A family of environments; this one is for those that no other knows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mosaic_sdk.operators.bare import success_of

from eval_worker.envs.game import Game, Outcome

Action = dict[str, Any]  # value, name, key (one character or None), keys (all of them)
Name = tuple[str, ...]  # an action's name, then its keys; the arrow keys are called left, right, up and down

MOST_NAMED = 64  # a longer list of actions helps no one; games with more list their legal moves
_MOST_NUMBERS = 64
_SPARE_KEYS = "0123456789abcdefghijklmnoprstuvwxyz"  # without q, which quits


class Family:
    """What is known about one game. Override what the environments of a family have in common."""

    names: Sequence[Name] = ()
    is_competitive = False

    def __init__(self, game: Game) -> None:
        self.game = game

    def actions(self, agent: str) -> list[Action] | None:
        """The discrete actions of an agent; None if they are not discrete, or too many."""
        space = self.game.action_space(agent)
        count = getattr(space, "n", None)
        if type(space).__name__ != "Discrete" or count is None or count > MOST_NAMED:
            return None
        names = self.action_names(agent)
        known = names if len(names) == count else [(str(value),) for value in range(count)]
        return named(known, first=int(getattr(space, "start", 0)))

    def action_names(self, agent: str) -> Sequence[Name]:
        return self.names

    def moves(self, agent: str, mask: Any) -> list[Action] | None:
        """The legal moves now, where they are too many to list them all once."""
        return None

    def text(self, agent: str, observation: Any) -> str:
        """What the agent may know, in words. Nothing that its observation does not hold."""
        return in_words(observation)

    def scene(self) -> str:
        """The whole state for a spectator; "" if there are no words for it."""
        return ""

    def success(self, outcome: Outcome, agent: str) -> bool | None:
        """Whether the agent's episode, which has ended, was a success; None if the environment has no such notion."""
        return success_of(outcome.infos.get(agent))


def named(names: Iterable[Name], first: int = 0) -> list[Action]:
    """Actions from their names and keys. One without a key gets a spare one while there are some."""
    entries = [(name, keys) for name, *keys in names]
    taken = {key for _, keys in entries for key in keys}
    spare = iter([key for key in _SPARE_KEYS if key not in taken])
    return [_entry(first + place, name, keys or _next(spare)) for place, (name, keys) in enumerate(entries)]


def _entry(value: int, name: str, keys: Sequence[str]) -> Action:
    key = next((key for key in keys if len(key) == 1), None)
    return {"value": value, "name": name, "key": key, "keys": list(keys)}


def _next(spare: Any) -> list[str]:
    key = next(spare, None)
    return [] if key is None else [key]


def in_words(observation: Any) -> str:
    """Any observation: its numbers if they are few, else its shape."""
    if isinstance(observation, Mapping):
        return "\n".join(f"{key}: {in_words(part)}" for key, part in observation.items())
    if isinstance(observation, (list, tuple)):
        return ", ".join(in_words(part) for part in observation)
    shape = getattr(observation, "shape", ())
    if not shape:
        return number(observation)
    if observation.size > _MOST_NUMBERS:
        return f"an array of {' × '.join(str(side) for side in shape)} numbers"
    return " ".join(number(one) for one in observation.flatten())


def number(value: Any) -> str:
    plain = value.item() if hasattr(value, "item") else value
    return f"{plain:.4g}" if isinstance(plain, float) else str(plain)


def article(noun: str) -> str:
    return f"an {noun}" if noun[:1] in "aeiou" else f"a {noun}"
