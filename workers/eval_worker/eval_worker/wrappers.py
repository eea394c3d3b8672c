"""Wrappers of our own that a script may name."""

from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium import spaces

MINIGRID_ACTIONS = 7


class MiniGridActions(gymnasium.Wrapper[Any, Any, Any, Any]):
    """mosaic-multigrid with MiniGrid's actions: left, right, forward, pickup, drop, toggle, done.

    mosaic-multigrid has a no-op in front of them. Together with mosaic_multigrid.wrappers.ImgObsWrapper and
    view_size=7, each agent has the spaces of MiniGrid, and a policy that was trained there can play.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        ours = {agent.index: agent.action_space for agent in env.unwrapped.agents}
        if any(space.n != MINIGRID_ACTIONS + 1 for space in ours.values()):
            raise ValueError("it is for mosaic-multigrid, whose agents have 8 actions")
        self.action_space = spaces.Dict({agent: spaces.Discrete(MINIGRID_ACTIONS) for agent in ours})

    def step(self, action: Mapping[int, int]) -> Any:
        return self.env.step({agent: int(chosen) + 1 for agent, chosen in action.items()})
