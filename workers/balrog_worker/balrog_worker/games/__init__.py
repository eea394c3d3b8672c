"""The games: each in its own module, which imports its library only when it is played."""

from balrog_worker.config import BalrogConfig
from balrog_worker.games.game import Game
from balrog_worker.tasks import Task

__all__ = ["Game", "make_game", "unavailable"]


def make_game(task: Task, config: BalrogConfig, folder: str) -> Game:
    """The game of a task. `folder`: where it may write its own files."""
    most = config.max_steps_of(task)
    if task.environment == "babyai":
        from balrog_worker.games.babyai import BabyAI

        return BabyAI(task.name, most)
    if task.environment == "crafter":
        from balrog_worker.games.crafter import Crafter

        return Crafter(most)
    if task.environment == "textworld":
        from balrog_worker.games.textworld import TextWorld

        return TextWorld(task.name, most, config, folder)
    if task.environment == "minihack":
        from balrog_worker.games.minihack import MiniHack

        return MiniHack(task.name, most)
    from balrog_worker.games.nethack import NetHack

    return NetHack(most, config.nle_progression_file)


def unavailable(task: Task) -> str:
    """Why a task cannot be played in this environment; empty if it can."""
    if task.name.startswith("Boxoban"):
        from balrog_worker.games.minihack import has_boxoban_levels
        from balrog_worker.tasks import BOXOBAN

        return "" if has_boxoban_levels() else BOXOBAN
    return ""
