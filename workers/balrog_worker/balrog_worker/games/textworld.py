"""TextWorld: games that its own makers generate from the episode's seed. Progress is the score's share of the maximum.

A game is generated and compiled when its episode begins, which takes 1 to 30 s.
"""

import os
import re
import warnings
from typing import Any

from mosaic_sdk.cli import WorkFailed

from balrog_worker.actions import Commands
from balrog_worker.config import BalrogConfig
from balrog_worker.games.game import Game, View

_EXAMPLES = ("look", "inventory", "go north", "take apple", "take key from table", "open door", "unlock door with key")
_MAKERS = {
    "treasure_hunter": "tw-treasure_hunter",
    "the_cooking_game": "tw-cooking",
    "coin_collector": "tw-coin_collector",
}
_TASKS = {
    "treasure_hunter": "Somewhere in a maze of rooms is the object that your task names. Find it and take it.",
    "the_cooking_game": (
        "You are hungry. Find the kitchen and read the cookbook there, gather the recipe's ingredients from the house, "
        "prepare them as it says, prepare the meal in the kitchen and eat it."
    ),
    "coin_collector": "Somewhere in a chain of rooms with dead ends lies a coin. Find it and take it.",
}


class TextWorld(Game):
    render_mode = None
    default, noop = "help", "look"

    def __init__(self, name: str, max_steps: int, config: BalrogConfig, folder: str) -> None:
        self.max_steps = max_steps
        self.actions = Commands(_EXAMPLES)
        self._name, self._folder = name, folder
        self._settings = _settings(name, config)
        self._env: Any = None
        self._state: Any = None
        self._steps = 0

    def reset(self, *, seed: int) -> tuple[View, dict[str, Any]]:
        import textworld

        self.close()
        infos = textworld.EnvInfos(
            objective=True, score=True, max_score=True, won=True, lost=True, admissible_commands=True
        )
        self._env = textworld.start(self._made(seed), infos)
        self._state = self._env.reset()
        self._steps, self.progress = 0, 0.0
        objective = " ".join(str(self._state.objective).split())
        self.goal = (
            "You play a text adventure: you move between rooms and handle objects by typing short commands.\n"
            f"{_TASKS[self._name]}" + (f"\nYour task: {objective}" if self._name == "treasure_hunter" else "")
        )
        return self._view(), {}

    def step(self, action: str) -> tuple[View, float, bool, bool, dict[str, Any]]:
        self._state, reward, over = self._env.step(action)
        self._steps += 1
        best = max(1, self._state.max_score)
        self.progress = 100.0 if self._state.won else 100.0 * max(0, self._state.score) / best
        is_over = bool(over)
        return self._view(), float(reward), is_over, not is_over and self._steps >= self.max_steps, {}

    def choices(self) -> list[str]:
        return list(self._state.admissible_commands or [self.noop])

    def details(self) -> dict[str, Any]:
        return {"score": int(self._state.score), "max_score": int(self._state.max_score), "won": bool(self._state.won)}

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None

    def _view(self) -> View:
        return View(_without_frame(str(self._state.feedback), str(self._state.objective or "")))

    def _made(self, seed: int) -> str:
        """The compiled game; it is made once for each seed."""
        label = "-".join([self._name, *(f"{name}{value}" for name, value in sorted(self._settings.items())), str(seed)])
        path = os.path.join(self._folder, "games", f"{label}.z8")
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            _compile(_MAKERS[self._name], self._settings, seed, path)
        return path


def _without_frame(text: str, objective: str) -> str:
    """A game's answer without the banner, the objective (the goal has it) and the status line at its end."""
    body = text.rpartition(objective)[2] if objective else text
    lines = body.rstrip().splitlines()
    if lines and lines[-1].startswith(">"):
        lines.pop()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _settings(name: str, config: BalrogConfig) -> dict[str, int]:
    if name == "treasure_hunter":
        return {"level": config.treasure_hunter_level}
    if name == "coin_collector":
        return {"level": config.coin_collector_level}
    return {"recipe": 1, "take": 1, "go": config.cooking_rooms}


def _compile(maker: str, settings: dict[str, int], seed: int, path: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library's own imports
        from textworld import GameOptions
        from textworld.challenges import CHALLENGES
        from textworld.generator import compile_game

        # A killed run leaves no half-made game under the final name.
        folder, name = os.path.split(path)
        options = GameOptions()
        options.seeds = seed
        options.path = os.path.join(folder, f"making-{name}")
        options.file_ext = ".z8"
        options.force_recompile = True
        options.grammar.only_last_action = True  # else the objective is a list of all the steps
        _, make, _ = CHALLENGES[maker]
        more = {"recipe_seed": seed + 1, "split": None} if maker == "tw-cooking" else {}
        try:
            made = compile_game(make({**settings, **more}, options), options)
        except Exception as error:  # the library raises anything, also of its compiler
            raise WorkFailed(f"TextWorld could not make the game {name}: {error}") from error
        stem = os.path.splitext(made)[0]
        os.replace(stem + ".json", os.path.splitext(path)[0] + ".json")
        os.replace(made, path)
        os.remove(stem + ".ni")
