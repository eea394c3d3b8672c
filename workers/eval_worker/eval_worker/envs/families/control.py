"""Environments whose state is a few numbers: classic control and Box2D."""

from collections.abc import Sequence
from typing import Any, TypeVar

from eval_worker.envs.families.family import Family, Name, in_words, number

T = TypeVar("T")
# The class of an environment: the names of its observation's numbers, and of its actions.
_NUMBERS: dict[str, tuple[str, ...]] = {
    "CartPoleEnv": ("cart position", "cart velocity", "pole angle (rad)", "pole angular velocity"),
    "MountainCarEnv": ("position", "velocity"),
    "Continuous_MountainCarEnv": ("position", "velocity"),
    "AcrobotEnv": (
        *("cosine of angle 1", "sine of angle 1", "cosine of angle 2", "sine of angle 2"),
        *("angular velocity 1", "angular velocity 2"),
    ),
    "PendulumEnv": ("cosine of the angle", "sine of the angle", "angular velocity"),
    "LunarLander": (
        *("x", "y", "x velocity", "y velocity", "angle", "angular velocity"),
        *("left leg touches", "right leg touches"),
    ),
}
_ACTIONS: dict[str, tuple[Name, ...]] = {
    "CartPoleEnv": (("left", "a", "left"), ("right", "d", "right")),
    "MountainCarEnv": (("left", "a", "left"), ("noop", "s", "down"), ("right", "d", "right")),
    "AcrobotEnv": (("torque left", "a", "left"), ("noop", "s", "down"), ("torque right", "d", "right")),
    "LunarLander": (
        ("noop", "s", "down"),
        ("left engine", "a", "left"),
        ("main engine", "w", "up"),
        ("right engine", "d", "right"),
    ),
    "CarRacing": (
        ("noop", "x"),
        ("right", "d", "right"),
        ("left", "a", "left"),
        ("gas", "w", "up"),
        ("brake", "s", "down"),
    ),
}


class Control(Family):
    def action_names(self, agent: str) -> Sequence[Name]:
        return self._of_class(_ACTIONS)

    def text(self, agent: str, observation: Any) -> str:
        names = self._of_class(_NUMBERS)
        if getattr(observation, "shape", None) != (len(names),):
            return in_words(observation)
        return "\n".join(f"{name}: {number(value)}" for name, value in zip(names, observation, strict=True))

    def _of_class(self, table: dict[str, tuple[T, ...]]) -> tuple[T, ...]:
        names = [base.__name__ for base in type(self.game.unwrapped).__mro__]
        return next((table[name] for name in names if name in table), ())
