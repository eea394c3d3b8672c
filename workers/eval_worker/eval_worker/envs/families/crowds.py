"""mpe2's particles and PettingZoo's butterfly games: several agents in one plane."""

from collections.abc import Sequence
from typing import Any

from eval_worker.envs.families.family import Family, Name, in_words

_WALK: tuple[Name, ...] = (
    ("noop", "x"),
    ("left", "a", "left"),
    ("right", "d", "right"),
    ("down", "s", "down"),
    ("up", "w", "up"),
)
_BUTTERFLY: dict[str, tuple[Name, ...]] = {
    "pistonball": (("down", "s", "down"), ("noop", "x"), ("up", "w", "up")),
    "knights_archers_zombies": (
        ("forward", "w", "up"),
        ("backward", "s", "down"),
        ("turn left", "a", "left"),
        ("turn right", "d", "right"),
        ("attack", "f"),
        ("noop", "x"),
    ),
    "cooperative_pong": (("noop", "x"), ("up", "w", "up"), ("down", "s", "down")),
}


class Particles(Family):
    """An agent that also speaks has other actions; those are only numbered."""

    names = _WALK

    def text(self, agent: str, observation: Any) -> str:
        meaning = "velocity, position, then distances to what you see"
        return f"You are {agent}. You observe ({meaning}): {in_words(observation)}"


class Butterfly(Family):
    def action_names(self, agent: str) -> Sequence[Name]:
        module = type(self.game.unwrapped).__module__
        return next((names for game, names in _BUTTERFLY.items() if game in module), ())

    def text(self, agent: str, observation: Any) -> str:
        return f"You are {agent}. You observe {in_words(observation)}"
