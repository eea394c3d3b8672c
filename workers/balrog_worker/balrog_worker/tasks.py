"""The tasks, with the numbers of episodes and steps that the benchmark publishes; docs/howto/balrog.md has the sources.

babyai/goto    crafter/default    textworld/coin_collector    minihack/Corridor-R3    nle/NetHackChallenge
"""

from typing import NamedTuple

from mosaic_sdk.config import ConfigError

ALL = "all"


class Environment(NamedTuple):
    """One of the benchmark's environments."""

    title: str
    tasks: tuple[str, ...]
    episodes: int  # of each task
    max_steps: int  # of an episode


ENVIRONMENTS = {
    "babyai": Environment("BabyAI", ("goto", "pickup", "open", "putnext", "pick_up_seq_go_to"), 10, 100),
    "crafter": Environment("Crafter", ("default",), 10, 2000),
    "textworld": Environment("TextWorld", ("treasure_hunter", "the_cooking_game", "coin_collector"), 10, 80),
    "minihack": Environment(
        "MiniHack",
        (
            "Boxoban-Hard",
            "Boxoban-Medium",
            "MazeWalk-9x9",
            "MazeWalk-15x15",
            "Corridor-R3",
            "CorridorBattle-Dark",
            "Quest-Easy",
            "Quest-Medium",
        ),
        5,
        100,
    ),
    "nle": Environment("NetHack", ("NetHackChallenge",), 5, 100_000),
}
BABA = (
    "Baba Is AI cannot be played here: the game is not on the package index, only in a repository. "
    "Results over the other environments are not the benchmark's overall average."
)
BOXOBAN = (
    "needs the Boxoban levels, which are not on the package index. Download them into this environment with: "
    "python -m minihack.scripts.download_boxoban_levels"
)


class Task(NamedTuple):
    environment: str
    name: str

    def __str__(self) -> str:
        return f"{self.environment}/{self.name}"


def chosen(text: str) -> list[Task]:
    """The tasks that a comma-separated list names: `all`, an environment, or a task. Each once, in the list's order."""
    found: dict[Task, None] = {}
    for name in (part.strip() for part in text.split(",")):
        found.update(dict.fromkeys(_tasks_of(name)))
    return list(found)


def _tasks_of(name: str) -> list[Task]:
    if name == ALL:
        return [Task(environment, task) for environment in ENVIRONMENTS for task in ENVIRONMENTS[environment].tasks]
    environment, _, task = name.partition("/")
    if environment.replace("_", "").replace("-", "").lower() in ("babaisai", "baba"):
        raise ConfigError(f"tasks: {BABA}")
    known = ENVIRONMENTS.get(environment)
    if known is None:
        raise ConfigError(
            f"tasks: there is no environment {environment!r}. Choose from: {ALL}, {', '.join(ENVIRONMENTS)}."
        )
    if task and task not in known.tasks:
        names = ", ".join(f"{environment}/{one}" for one in known.tasks)
        raise ConfigError(f"tasks: there is no task {name!r}. Choose from: {environment}, {names}.")
    return [Task(environment, one) for one in ((task,) if task else known.tasks)]
