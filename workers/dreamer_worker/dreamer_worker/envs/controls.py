"""A Gymnasium env's actions, as flat named spaces for the agent, and back. docs/howto/dreamer-envs.md has the table.

Dict({"move": Discrete, "arm": Tuple((Box, MultiBinary))})   ◀─▶   {"action/move": …, "action/arm/0": …, …}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from dreamer_worker.agent.spaces import Space, Spaces
from dreamer_worker.envs import Action, groups_of, stretch
from dreamer_worker.envs.library import BadEnv

Play = Callable[[Action], Any]


class Controls:
    """Its promises:

    1. `spaces` names every part of an action once, `action` or `action/…`; numbers are in -1 .. 1, choices from 0 on.
    2. Called with a value of each, it gives what the env's own space contains, nested and typed as there.
    """

    def __init__(self, space: Any) -> None:
        self.spaces: Spaces = {}
        self._play = self._part("action", space)
        if not self.spaces:
            raise BadEnv(f"env: {space} has no action to choose, but the agent needs at least one.")

    def __call__(self, action: Action) -> Any:
        return self._play(action)

    def _part(self, name: str, space: Any) -> Play:
        if isinstance(space, spaces.Dict):
            parts = {key: self._part(f"{name}/{key}", part) for key, part in space.spaces.items()}
            return lambda action: {key: play(action) for key, play in parts.items()}
        if isinstance(space, spaces.Tuple):
            plays = [self._part(f"{name}/{index}", part) for index, part in enumerate(space.spaces)]
            return lambda action: tuple(play(action) for play in plays)
        if 0 in (space.shape or ()):  # no action to choose
            return lambda action: np.zeros(space.shape, space.dtype)
        kinds = {
            spaces.Discrete: self._choice,
            spaces.MultiDiscrete: self._choices,
            spaces.MultiBinary: self._switches,
            spaces.Box: self._box,
        }
        for kind, take in kinds.items():
            if isinstance(space, kind):
                return take(name, space)
        raise BadEnv(
            f"env: its action {name!r} is {space}; the agent plays arrays of one size only. Wrap it with "
            "gymnasium.wrappers.TransformAction, so that it takes a Discrete, MultiDiscrete, MultiBinary or Box."
        )

    def _choice(self, name: str, space: Any) -> Play:
        self._add(name, Space("int32", (), 0, int(space.n)))
        return lambda action: space.dtype.type(space.start + int(action[name]))

    def _choices(self, name: str, space: Any) -> Play:
        groups = groups_of(name, space.nvec)
        for key, places, classes in groups:
            self._add(key, Space("int32", (len(places),), 0, classes))

        def play(action: Action) -> Any:
            chosen = np.zeros(space.nvec.size, space.dtype)
            for key, places, _ in groups:
                chosen[places] = action[key]
            return chosen.reshape(space.shape) + space.start

        return play

    def _switches(self, name: str, space: Any) -> Play:
        self._add(name, Space("bool", (int(np.prod(space.shape)),)))
        return lambda action: np.asarray(action[name], bool).reshape(space.shape).astype(space.dtype)

    def _box(self, name: str, space: Any) -> Play:
        if space.dtype == bool:
            return self._switches(name, space)
        self._add(name, Space("float32", (int(np.prod(space.shape)),), -1, 1))

        def play(action: Action) -> Any:
            values = stretch(np.asarray(action[name], np.float32), space.low, space.high)
            if space.dtype.kind != "f":
                values = np.rint(values)
            # Clip again: rounding may move a value out of the bounds.
            return np.asarray(values.astype(space.dtype).clip(space.low, space.high))

        return play

    def _add(self, name: str, space: Space) -> None:
        if name in self.spaces:
            raise BadEnv(f"env: two parts of its action would both be called {name!r}. Rename one of them.")
        self.spaces[name] = space
