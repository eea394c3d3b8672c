"""Atari: ALE names its actions itself."""

from collections.abc import Sequence
from typing import Any

from eval_worker.envs.families.family import Family, Name, in_words

_KEYS: dict[str, tuple[str, ...]] = {
    "NOOP": ("x",),
    "FIRE": ("f", "space"),
    "UP": ("w", "up"),
    "RIGHT": ("d", "right"),
    "LEFT": ("a", "left"),
    "DOWN": ("s", "down"),
    **{"UPRIGHT": ("e",), "UPLEFT": ("y",), "DOWNRIGHT": ("c",), "DOWNLEFT": ("z",)},
    **{"UPFIRE": ("i",), "RIGHTFIRE": ("l",), "LEFTFIRE": ("j",), "DOWNFIRE": ("k",)},
}


class Atari(Family):
    def action_names(self, agent: str) -> Sequence[Name]:
        return [(name.lower(), *_KEYS.get(name, ())) for name in self.game.unwrapped.get_action_meanings()]

    def text(self, agent: str, observation: Any) -> str:
        info = self.game.info(agent)
        known = {name: info[name] for name in ("lives", "episode_frame_number") if name in info}
        words = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in known.items())
        return f"The screen is {in_words(observation)}. {words}."
