"""MiniHack: one small level of NetHack with a task. Progress is 100 if the task was solved."""

import os
import warnings
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # minihack imports pkg_resources, which is deprecated
    import minihack

from balrog_worker.games.dungeon import Dungeon
from balrog_worker.games.screen import KEYS

_REACH = "Reach the stairs down (>)."
_GOALS = {
    "Boxoban": "Push every boulder onto a fountain. Boulders can be pushed, one at a time, but not pulled.",
    "MazeWalk": "Find the stairs down (>) in the maze, and step onto them.",
    "Corridor": "Find the stairs down (>). They are in another room, at the end of the corridors.",
    "CorridorBattle": "Defeat the monsters, best one at a time in the corridor, and reach the stairs down (>).",
    "Quest": "Cross the lava with what you find, reach the other side and its stairs down (>), and survive.",
}


class MiniHack(Dungeon):
    default = "north"

    def __init__(self, name: str, max_steps: int) -> None:
        spec = gymnasium.spec(f"MiniHack-{name}-v0")
        # Not gymnasium.make: its wrappers limit the steps and know nothing of pages of messages.
        create = load_env_creator(spec.entry_point)
        env = create(
            **{
                **spec.kwargs,
                "observation_keys": KEYS,
                "max_episode_steps": max_steps + 1000,  # steps that read messages do not count
                "character": "@",
                "autopickup": False,
                "penalty_step": -0.01,
                "penalty_time": 0.0,
                "penalty_mode": "constant",
                "savedir": None,
            }
        )
        super().__init__(env, max_steps)
        self.noop = next((word for word in ("wait", "search") if word in self._keys), self.default)
        # CorridorBattle before Corridor.
        goal = next((text for kind, text in sorted(_GOALS.items(), reverse=True) if name.startswith(kind)), _REACH)
        self.goal = f"You play MiniHack, a small level of the dungeon game NetHack. You are the @ on the map.\n{goal}"

    def judge(self, observation: Any, info: dict[str, Any]) -> None:
        solved = self._env.StepStatus.TASK_SUCCESSFUL
        if info.get("end_status") == solved:
            self.progress = 100.0


def has_boxoban_levels() -> bool:
    """Whether the levels lie where MiniHack's own download script puts them."""
    return os.path.isdir(os.path.join(os.path.dirname(minihack.__file__), "dat", "boxoban-levels-master"))
