"""The environments of a curriculum: each copy is replaced at the end of an episode if the stage has changed.

    ppo ─▶ RecordEpisodeStatistics ─▶ GymnasiumSyncWrapper ─▶ BabyAITaskWrapper ─▶ the stage's environment
                                            │ episodes, "which task?"
                                            ▼
                                         Channel ─▶ StagedCurriculum ─▶ curriculum_stage events

Syllabus uses queues, a thread and shared memory to reach a curriculum in another process. Ours is in the same process,
so `Channel` answers immediately: stages change without delay, nothing needs to be cleaned up, and runs are repeatable.
"""

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import gymnasium
import numpy as np
from mosaic_sdk import emit
from mosaic_sdk.config import ConfigError

from cleanrl_worker.wrappers.observations import for_agent
from cleanrl_worker.wrappers.recording import record
from cleanrl_worker.wrappers.schedule import RETURN_EPISODES, Progress, Stage, read_schedule
from cleanrl_worker.wrappers.syllabus_rl import (
    DiscreteTaskSpace,
    GymnasiumSyncWrapper,
    ReinitTaskWrapper,
    SequentialCurriculum,
    hush,
    without_wandb,
)

Env = gymnasium.Env[Any, Any]
STAGE_EVENT = "curriculum_stage"


class BabyAITaskWrapper(ReinitTaskWrapper):  # type: ignore[misc]
    """The environment of the current task, recreated when the task changes.

    1. Only one environment exists at a time. The old one is closed first, so that frames continue in the same slot.
    2. The seed of a reset is a seed. (Syllabus' own wrapper takes it for the number of a task.)
    3. Environments that are created later are seeded from the first seed, so a training can be repeated.
    """

    env: Env

    def __init__(self, env: Env, env_fn: Callable[[int], Env], task_space: Any = None) -> None:
        super().__init__(env, env_fn, task_space)
        # The first environment's, permanently: all stages have the same, and its random numbers must continue.
        self.action_space = env.action_space
        self.task = 0
        self._seeds = np.random.default_rng()
        self._is_new = False

    def reset(self, new_task: int | None = None, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        if seed is not None:
            self._seeds = np.random.default_rng(seed)
        if new_task is not None and new_task != self.task:
            self.change_task(new_task)
        if self._is_new and seed is None:
            seed = int(self._seeds.integers(2**31))
        self._is_new = False
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, {**info, "task_completion": 0.0}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        done = float(terminated and float(reward) > 0)
        return observation, reward, terminated, truncated, {**info, "task_completion": done}

    def change_task(self, new_task: int) -> None:
        self.env.close()
        self.env = self.env_fn(new_task)
        self.task = new_task
        self._is_new = True


class StagedCurriculum(SequentialCurriculum):  # type: ignore[misc]
    """Syllabus' sequence of tasks with our conditions. `on_stage` is called when a stage begins."""

    def __init__(self, stages: tuple[Stage, ...], on_stage: Callable[[int, Mapping[str, Any]], None]) -> None:
        tasks = list(range(len(stages)))
        conditions = [self._over(stage) for stage in stages[:-1]]
        with without_wandb():
            super().__init__(tasks, conditions, DiscreteTaskSpace(len(tasks), tasks))
        self._on_stage = on_stage

    @property
    def stage(self) -> int:
        return int(self._curriculum_index)

    def progress(self) -> Progress:
        return Progress(self.n_steps, self.n_episodes, self.episode_returns)

    def check_stopping_conditions(self) -> None:
        before, done = self.stage, self._statistics()
        super().check_stopping_conditions()
        if self.stage != before:
            self._on_stage(self.stage, done)

    def _over(self, stage: Stage) -> Callable[[], bool]:
        return lambda: stage.condition.holds(self.progress())

    def _statistics(self) -> dict[str, Any]:
        returns = list(self.episode_returns)[-RETURN_EPISODES:]  # the ones that its condition uses
        mean = sum(returns) / len(returns) if returns else None
        return {"steps": self.n_steps, "episodes": self.n_episodes, "mean_return": mean}


class Channel:
    """Replaces the queues of Syllabus' wrapper: answers its requests in the same process."""

    requires_step_updates = False

    def __init__(self, curriculum: StagedCurriculum) -> None:
        self.curriculum = curriculum
        self._envs = 0

    def get_id(self) -> int:
        self._envs += 1
        return self._envs - 1

    def should_sync(self, env_id: int) -> bool:
        return False

    def put_update(self, updates: Any) -> None:
        for update in updates if isinstance(updates, list) else [updates]:
            if update["update_type"] == "episode":
                self.curriculum.update_on_episode(*update["metrics"], env_id=update.get("env_id"))

    def get_task(self) -> dict[str, int]:
        # Decided now, not in advance: the next episode belongs to the stage that has just begun.
        return {"next_task": self.curriculum.current_curriculum.sample(k=1)[0]}


class CurriculumTraining:
    """Runs a schedule: creates the environments, follows the stages and emits an event when one begins."""

    def __init__(self, stages: tuple[Stage, ...], capture_video: bool = False) -> None:
        check_environments(stages)
        self.stages = stages
        self._options: dict[str, Any] = {"render_mode": "rgb_array"} if capture_video else {}
        self.curriculum = StagedCurriculum(stages, self._emit_stage)
        self._channel = Channel(self.curriculum)
        self._emit_stage(0, {})

    @classmethod
    def from_json(cls, text: str, capture_video: bool = False) -> "CurriculumTraining":
        return cls(read_schedule(json.loads(text)), capture_video)

    @property
    def stage(self) -> int:
        return self.curriculum.stage

    def make_env(self, env_id: str, seed: int, idx: int, capture_video: bool, run_name: str) -> Callable[[], Env]:
        """Like ppo's own make_env, but the schedule, not `env_id`, determines the environment."""

        def thunk() -> Env:
            space = self.curriculum.task_space
            tasks = BabyAITaskWrapper(self._make(self.stage), self._make, space)
            tasks.task = self.stage
            env: Env = record(GymnasiumSyncWrapper(tasks, space, self._channel), seed, idx, capture_video, run_name)
            return env

        return thunk

    def counts(self) -> tuple[int, int, int]:
        """The current stage, and its steps and episodes so far."""
        return self.stage, self.curriculum.n_steps, self.curriculum.n_episodes

    def catch_up(self, stage: int, steps: int, episodes: int) -> None:
        """Continue from these `counts`: a resumed training is in its stage from the next episodes on."""
        if (stage, steps, episodes) == self.counts():
            return
        if stage < 0:
            raise ConfigError("The checkpoint belongs to a training without a curriculum. Remove curriculum_schedule.")
        if stage >= len(self.stages):
            raise ConfigError(f"The checkpoint is in stage {stage + 1}, but the schedule has only {len(self.stages)}.")
        self.curriculum._curriculum_index = stage
        self.curriculum.n_steps, self.curriculum.n_episodes = steps, episodes
        self._emit_stage(stage, {"resumed": True})

    def _make(self, task: int) -> Env:
        return for_agent(gymnasium.make(self.stages[task].env_id, **self._options))

    def _emit_stage(self, stage: int, before: Mapping[str, Any]) -> None:
        payload = {"stage": stage, "stages": len(self.stages), **self.stages[stage].to_dict(), "before": before}
        emit.lifecycle(STAGE_EVENT, payload)


def check_environments(stages: Iterable[Stage]) -> None:
    """ConfigError if a stage's environment does not exist or has different observations or actions from the first."""
    first: tuple[str, Any, Any] | None = None
    for number, stage in enumerate(stages):
        field = f"curriculum_schedule[{number}].env_id"
        env = for_agent(_make_known(stage.env_id, field))
        found = (stage.env_id, env.observation_space, env.action_space)
        env.close()
        first = first or found
        for what, one, other in (("observations", first[1], found[1]), ("actions", first[2], found[2])):
            if one != other:
                raise ConfigError(
                    f"{field}: {stage.env_id} has different {what} ({_short(other)}) from {first[0]} ({_short(one)}), "
                    "but the same agent must play all stages."
                )


def _make_known(env_id: str, field: str) -> Env:
    _quieten_babyai()
    # Not MOSAIC's import hook: an environment that is only inspected must not be shown.
    make = getattr(gymnasium.make, "__wrapped__", gymnasium.make)
    try:
        return make(env_id)
    except gymnasium.error.Error as error:
        near = difflib.get_close_matches(env_id, list(gymnasium.registry), n=2)
        hint = f"Did you mean {' or '.join(near)}?" if near else str(error)
        raise ConfigError(f"{field}: there is no environment '{env_id}'. {hint}") from None


def _quieten_babyai() -> None:
    # It prints "Sampling rejected" to stdout whenever it has to generate a level again.
    from minigrid.envs.babyai.core import roomgrid_level

    hush(roomgrid_level)


def _short(space: object) -> str:
    text = str(space)
    return text if len(text) <= 60 else f"{text[:59]}…"
