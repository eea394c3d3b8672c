"""--script eval: a trained agent plays episodes with its most likely actions. Nothing is learned."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.evaluation import Evaluation, seeds_from
from mosaic_sdk.names import WorkerEnv

from dreamer_worker.actor import stack
from dreamer_worker.agent_process import PART
from dreamer_worker.checkpoint import WORKER, Epochs, read_arrays
from dreamer_worker.config import DreamerConfig
from dreamer_worker.dream import dreamed
from dreamer_worker.envs import make_env
from dreamer_worker.factories import make_agent_for
from dreamer_worker.fastlane import Screen
from dreamer_worker.logger import write_clip
from dreamer_worker.settings import find
from dreamer_worker.telemetry import Telemetry

ALGO = "dreamerv3"
RECORDED = 3  # episodes of an evaluation with capture_video
VIDEO_FPS = 20
MOST_FRAMES = 3000  # of one video: a frame of 64 x 64 pixels takes 12 kB until it is written


class Policy:
    """An agent acting in one env: the given one, or that of the checkpoint."""

    def __init__(self, env: Any, config: DreamerConfig, agent: Any = None) -> None:
        # Located before the agent is built, which takes a while.
        weights, self.epoch = (None, 0) if agent else locate(config)
        self.agent = agent or make_agent_for(env, config)
        if weights is not None:
            load(self.agent, weights, config)
        self._carry = self.agent.init_policy(1)

    def choose(self, obs: dict[str, Any]) -> dict[str, Any]:
        self._carry, actions, _ = self.agent.policy(self._carry, stack([obs]), "eval")
        return {key: value[0] for key, value in actions.items()}

    def took(self, action: dict[str, Any]) -> None:
        """An action other than the chosen one was taken: continue from it."""
        if "prevact" in self._carry:
            spaces = self.agent.act_space
            done = {key: np.asarray(action[key], space.dtype).reshape(1, *space.shape) for key, space in spaces.items()}
            self._carry = {**self._carry, "prevact": done}


def locate(config: DreamerConfig) -> tuple[Path | None, int]:
    """The weights to play and their epoch: the newest of a checkpoints folder, one epoch of it (0), or an npz (0).

    None for a random agent without a checkpoint.
    """
    given = find(config.checkpoint or config.checkpoint_dir)
    if given.is_file() or (given / PART).is_file():
        return given if given.is_file() else given / PART, 0
    epoch = Epochs(given).newest()
    if epoch is not None:
        return Epochs(given).path(epoch) / PART, epoch
    if config.random_agent:
        return None, 0
    raise CheckpointError(
        f"There is no complete checkpoint in {given}. Give a run's folder: checkpoint=/path/of/the/run"
    )


def load(agent: Any, path: Path, config: DreamerConfig) -> None:
    """Load the weights, or raise CheckpointError if they belong to another agent."""
    try:
        agent.load(read_arrays(path))
    except ValueError as error:
        first = str(error).partition(";")[0]
        raise CheckpointError(
            f"{path} does not fit the agent of env={config.env} and size={config.size}. "
            f"Set env and size to the values that it was trained with. {first} …"
        ) from None


@dataclass(frozen=True)
class Played:
    """One episode."""

    seed: int
    score: float
    length: int
    terminated: bool


class EpisodePlayer:
    """Plays episodes with the most likely actions, each in a new env with its own seed.

    `watch` is called with the env and every observation.
    """

    def __init__(
        self, config: DreamerConfig, agent: Any = None, watch: Callable[[Any, dict[str, Any]], None] | None = None
    ) -> None:
        self._config, self._agent, self._watch = config, agent, watch or (lambda env, obs: None)
        self._policy: Policy | None = None
        self._env: Any = None

    def play(self, seed: int) -> Played:
        self.close()
        self._env = make_env(self._config.env, seed=seed, **self._config.env_options)
        policy = self.policy
        self._env = dreamed(self._env, policy.agent, self._config, seed)
        obs = self._env.reset()
        self._watch(self._env, obs)
        score, length = 0.0, 0
        while not obs["is_last"]:
            obs = self._env.step(policy.choose(obs))
            self._watch(self._env, obs)
            score += float(obs["reward"])
            length += 1
        return Played(seed, score, length, bool(obs["is_terminal"]))

    @property
    def policy(self) -> Policy:
        """Created with the first env, whose spaces it needs."""
        if self._policy is None:
            self._policy = Policy(self._env, self._config, self._agent)
        return self._policy

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None


class Audience:
    """Observers of an evaluation: MOSAIC's viewers, telemetry of single steps, a video of the first episodes."""

    def __init__(self, config: DreamerConfig, telemetry: Telemetry, folder: Path) -> None:
        self._config, self._telemetry, self._folder = config, telemetry, folder
        self._env: Any = None
        self._screen = Screen(0, lambda: self._env.render())
        self._frames: list[Any] = []
        self._length = self._number = 0

    def watch(self, env: Any, obs: dict[str, Any]) -> None:
        self._env = env
        self._screen.note(obs)
        if self._config.emit_steps and not obs["is_first"]:
            terminated = bool(obs["is_terminal"])
            self._telemetry.step(self._length, float(obs["reward"]), episode_index=self._number, terminated=terminated)
        self._length = 0 if obs["is_first"] else self._length + 1
        if self._is_recording and (frame := env.render()) is not None:
            self._frames.append(np.asarray(frame, np.uint8))

    def end_episode(self, played: Played) -> None:
        if self._frames:
            folder = self._folder / "videos" / "eval"
            folder.mkdir(parents=True, exist_ok=True)
            write_clip(folder / f"episode-{self._number:03d}-seed-{played.seed}.gif", np.stack(self._frames), VIDEO_FPS)
            self._frames = []
        elif self._is_recording:
            print("No video was recorded: this env cannot render frames.", file=sys.stderr, flush=True)
        self._number += 1

    def close(self) -> None:
        self._screen.close()

    @property
    def _is_recording(self) -> bool:
        return self._config.capture_video and self._number < RECORDED and len(self._frames) < MOST_FRAMES


def run_eval(config: DreamerConfig, telemetry: Telemetry) -> dict[str, Any]:
    """Play `episodes` episodes, with the seeds `seed`, `seed` + 1 …; returns the summary without its rows."""
    folder = Path(os.environ.get(WorkerEnv.RUN_DIR) or config.logdir)
    audience = Audience(config, telemetry, folder)
    player = EpisodePlayer(config, watch=audience.watch)
    found = evaluation_of(config, telemetry)
    steps = 0
    for seed in seeds_from(config.seed, config.episodes):
        played = player.play(seed)
        audience.end_episode(played)
        steps += played.length
        found.add(seed, played.score, played.length, played.terminated, not played.terminated)
        telemetry.metrics({"eval_episode/score": played.score, "eval_episode/length": played.length}, steps)
    more = {"total_steps": steps, "checkpoint_epoch": player.policy.epoch}
    audience.close()
    player.close()
    found.write(folder, **more)
    return {**found.statistics(), **more}


def env_played(config: DreamerConfig) -> str:
    """Returns in the world model are not returns in the env: no comparison and no model card may take them for such."""
    return f"dream:{config.env}" if config.dream else config.env


def evaluation_of(config: DreamerConfig, telemetry: Telemetry) -> Evaluation:
    weights, _ = locate(config)
    return Evaluation(
        run_id=config.run_id,
        worker=WORKER,
        env_id=env_played(config),
        algo=ALGO,
        checkpoint=str(weights or ""),
        deterministic=not (config.random_agent or config.agent.get("eval_samples", False)),
        emitter=telemetry,
    )
