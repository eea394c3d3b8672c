"""Which episodes are played, and in which order: all of a task, then the next task."""

import sys
from dataclasses import dataclass
from typing import NamedTuple

from mosaic_sdk.config import ConfigError
from mosaic_sdk.evaluation import seeds_from

from balrog_worker.config import BalrogConfig
from balrog_worker.games import unavailable
from balrog_worker.tasks import Task


@dataclass(frozen=True)
class Episode:
    index: int  # over all tasks
    task: Task
    seed: int

    @property
    def key(self) -> tuple[str, int]:
        return str(self.task), self.seed


class Plan(NamedTuple):
    episodes: list[Episode]
    left_out: dict[str, str]  # tasks of `all` that cannot be played here, with the reason


def make_plan(config: BalrogConfig) -> Plan:
    """ConfigError if a task that was named cannot be played."""
    named = {part.strip() for part in config.tasks.split(",")}
    playable: list[Task] = []
    left_out: dict[str, str] = {}
    for task in config.chosen_tasks():
        reason = unavailable(task)
        if reason and str(task) in named:
            raise ConfigError(f"tasks: {task} {reason}")
        if reason:
            left_out[str(task)] = reason
            print(f"balrog: {task} is left out: it {reason}", file=sys.stderr)
        else:
            playable.append(task)
    pairs = [(task, seed) for task in playable for seed in seeds_from(config.seed, config.episodes_of(task))]
    return Plan([Episode(index, task, seed) for index, (task, seed) in enumerate(pairs)], left_out)
