"""What a person is asked, and the keys for the answers. The terminal and the window use the same keys."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosaic.client.evaluation_state import EvaluationState
    from mosaic.client.lanes import ActionRequest, Choice

FREE = "1234567890abcdefghijklmnopqrstuvwxyz"
# Names of keys in other programs, and what `Keyboard` calls them.
SAME = {
    "space": " ",
    "return": "enter",
    "esc": "escape",
    "backspace": "back",
    **{f"arrow{way}": way for way in ("up", "down", "left", "right")},
    **{f"arrow_{way}": way for way in ("up", "down", "left", "right")},
}
SHOWN = {" ": "space", "up": "↑", "down": "↓", "left": "←", "right": "→"}
RESERVED = frozenset({"escape", ":", "closed"})  # they open the way out, whatever the environment says


class Questions:
    """The requests to one operator or agent (an empty `name`: to anybody) that this terminal has not answered yet."""

    def __init__(self, evaluation: "EvaluationState", name: str = "") -> None:
        self._evaluation = evaluation
        self.name = name
        self._answered: set[Any] = set()

    def open(self) -> "list[ActionRequest]":
        asked = self._evaluation.requests_for(self.name)
        return [request for request in asked if identity(request) not in self._answered]

    def sent(self, command: Mapping[str, Any]) -> None:
        """An `act` is on its way: do not ask again."""
        self._answered.add(_identity_in(command))

    def refused(self, command: Mapping[str, Any]) -> None:
        """An answer was not accepted: ask again."""
        self._answered.discard(_identity_in(command))


def identity(request: "ActionRequest") -> tuple[int, str, Any]:
    return request.lane, request.agent_id, request.request


def _identity_in(command: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return command.get("lane"), command.get("agent_id", ""), command.get("request")


def key_map(choices: "Sequence[Choice]") -> "dict[str, Choice]":
    """Each action by its keys. An action whose keys are taken, or that has none, gets a free one if there is any."""
    keys: dict[str, Choice] = {}
    left = []
    for choice in choices:
        fresh = [key for key in map(_named, choice.keys) if key not in keys and key not in RESERVED]
        keys |= dict.fromkeys(fresh, choice)
        left += [] if fresh else [choice]
    free = iter([key for key in FREE if key not in keys])
    return {**keys, **{key: choice for choice, key in zip(left, free, strict=False)}}


def legend(keys: "dict[str, Choice]") -> list[str]:
    """`["a ← left", "space pick up"]`: each action once, with its keys."""
    by_action: dict[int, list[str]] = {}
    for key, choice in keys.items():
        by_action.setdefault(id(choice), []).append(shown(key))
    names = {id(choice): choice.name for choice in keys.values()}
    return [f"{' '.join(keys)} {names[action]}" for action, keys in by_action.items()]


def shown(key: str) -> str:
    """The key as the screen names it."""
    return SHOWN.get(key, key)


def _named(key: str) -> str:
    low = key.lower()
    if low in SAME:
        return SAME[low]
    return low if len(key) > 1 else key
