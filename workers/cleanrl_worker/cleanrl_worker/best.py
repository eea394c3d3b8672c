"""The best policy of a training so far, evaluated every `eval_every` steps and stored apart from other checkpoints.

checkpoints/best/checkpoint-000000050000.pt     like any checkpoint: it can be evaluated or resumed
checkpoints/best/best.json                      {"path", "step", "score", "episodes", "seeds", "env_id", "version"}

The evaluation uses its own environments and seeds and restores the state of every random number generator, so the
training ends with exactly the same weights as without it. A curriculum is always evaluated on the environment of its
last stage, so that scores can be compared.
"""

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.checkpoints import Checkpoints
from mosaic_sdk.evaluation import EVAL_AGENT, EVAL_MEAN_RETURN, FIRST_SEED, Evaluation
from mosaic_sdk.names import BEST, TelemetryEnv

from cleanrl_worker import WORKER
from cleanrl_worker.checkpoints import PATTERN, Checkpoint
from cleanrl_worker.evaluate import Episode, Player
from cleanrl_worker.keeper import Keeper
from cleanrl_worker.lanes import make_lanes
from cleanrl_worker.policy import load_policy
from cleanrl_worker.registry import Algorithm
from cleanrl_worker.state import capture_rng, restore_rng


class Best:
    """Evaluates the current policy and saves it if it is better than all earlier ones."""

    def __init__(
        self, keeper: Keeper, algorithm: Algorithm, script: ModuleType, is_stopping: Callable[[], bool]
    ) -> None:
        self._keeper, self._algorithm, self._script = keeper, algorithm, script
        self._pulse = _Pulse(is_stopping)
        self._checkpoints = Checkpoints(keeper.folder, PATTERN)
        self._played = 0
        # The phases of a custom script share a folder: the best of an earlier phase still counts.
        known = self._checkpoints.best_score(env_id=keeper.goal)
        self._score = -math.inf if known is None else known

    def measure(self, turn: int, step: int) -> None:
        """At a safe point: play, report, and save the policy if it is the best so far."""
        try:
            with self._aside():
                episodes = self._play(step)
        except _Stopping:
            return  # the training stops and is saved
        found = self._report(episodes, step)
        if math.isfinite(found.mean_return) and found.mean_return > self._score:
            self._keep(turn, step, found)

    def _play(self, step: int) -> list[Episode]:
        config = self._keeper.config
        now = Checkpoint(config.algo, self._keeper.goal, step, path="the policy in training", **self._keeper.network())
        count = config.eval_episodes
        lanes = make_lanes(self._algorithm, self._script, now.env_id, min(config.eval_batch_size, count), now)
        device = "cuda" if config.cuda else "cpu"
        policy = load_policy(now, self._script, lanes[0], config.eval_deterministic, device)
        player = Player(policy, lanes, 1.0, config.eval_max_episode_steps, self._pulse)
        try:
            return player.play(count, first_seed(now.params))
        finally:
            player.close()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Leave the training's random numbers, clock and frames unchanged by the block."""
        rng, started = capture_rng(), time.time()
        try:
            with _unshown():
                yield
        finally:
            restore_rng(rng)
            main = vars(self._script)
            if "start_time" in main:  # scripts compute steps per second from it
                main["start_time"] += time.time() - started

    def _report(self, episodes: list[Episode], step: int) -> Evaluation:
        config = self._keeper.config
        found = Evaluation(
            run_id=config.run_id,
            worker=WORKER,
            env_id=self._keeper.goal,
            algo=config.algo,
            deterministic=config.eval_deterministic,
            agent_id=EVAL_AGENT,
            global_step=step,
            first_index=self._played,
        )
        for episode in episodes:
            episode.add_to(found)
        self._played += len(episodes)
        writer: Any = vars(self._script).get("writer")
        # telemetry.py forwards what the script's writer receives.
        add = writer.add_scalar if hasattr(writer, "add_scalar") else emit.metric
        add(EVAL_MEAN_RETURN, found.mean_return, step)
        return found

    def _keep(self, turn: int, step: int, found: Evaluation) -> None:
        path, left_out = self._keeper.write(self._keeper.folder / BEST, turn, step)
        self._score = found.mean_return
        self._checkpoints.keep_best(path, step=step, score=self._score, seeds=found.seeds, env_id=self._keeper.goal)
        emit.checkpoint_saved(path, step=step, best=True, score=self._score, left_out=left_out)


class _Stopping(Exception):
    """The training was asked to stop during an evaluation."""


class _Pulse:
    """Replaces the player's heartbeat, which the runtime's process sends during a training."""

    def __init__(self, is_stopping: Callable[[], bool]) -> None:
        self._is_stopping = is_stopping

    def advance(self, steps: int) -> None:
        if self._is_stopping():
            raise _Stopping


def first_seed(params: Any) -> int:
    """1,000,000, or the first seed after the training's own if those are higher."""
    training = int(params.get("seed") or 0)
    end = training + int(params.get("num_envs") or 1)
    return end if end > FIRST_SEED else FIRST_SEED


@contextmanager
def _unshown() -> Iterator[None]:
    """Do not show environments that are created inside the block: they would replace the training's frames."""
    before = os.environ.get(TelemetryEnv.FASTLANE_ONLY)
    os.environ[TelemetryEnv.FASTLANE_ONLY] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[TelemetryEnv.FASTLANE_ONLY]
        else:
            os.environ[TelemetryEnv.FASTLANE_ONLY] = before
