"""The best policy of a training so far: evaluated every `eval_every` steps, kept apart from the other checkpoints.

checkpoints/best/checkpoint-000000050000.pt     as every checkpoint: evaluate it, or go on from it
checkpoints/best/best.json                      {"path", "step", "score", "episodes", "seeds", "env_id", "version"}

The evaluation has environments and seeds of its own and gives every random number generator back as it found it, so a
training ends with the very weights it would have without. A curriculum is evaluated where it leads to: on the
environment of its last stage, from the beginning, so that scores can be compared.
"""

import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.names import TelemetryEnv

from cleanrl_worker.checkpoints import BEST, BEST_FILE, Checkpoint
from cleanrl_worker.evaluate import Episode, Player, settings_of, write_whole
from cleanrl_worker.keeper import Keeper
from cleanrl_worker.lanes import make_lanes
from cleanrl_worker.policy import load_policy
from cleanrl_worker.registry import Algorithm
from cleanrl_worker.state import capture_rng, restore_rng

FIRST_SEED = 1_000_000
AGENT = "eval"  # whose episodes these are, in telemetry


class Best:
    """Judges the policy as it is now, and keeps it if no earlier one was better."""

    def __init__(
        self, keeper: Keeper, algorithm: Algorithm, script: ModuleType, is_stopping: Callable[[], bool]
    ) -> None:
        self._keeper, self._algorithm, self._script = keeper, algorithm, script
        self._pulse = _Pulse(is_stopping)
        self._settings = settings_of(keeper.config)
        self._folder = keeper.folder / BEST
        self._played = 0
        self._score = self._known_score()

    def measure(self, turn: int, step: int) -> None:
        """At a safe point: play, tell, and keep the policy if it is the best."""
        try:
            with self._aside():
                episodes = self._play(step)
        except _Stopping:
            return  # the training is saved instead
        score = statistics.fmean(episode.total_return for episode in episodes)
        self._tell(episodes, score, step)
        if math.isfinite(score) and score > self._score:
            self._keep(turn, step, score, [episode.seed for episode in episodes])

    def _play(self, step: int) -> list[Episode]:
        config, asked = self._keeper.config, self._settings
        now = Checkpoint(config.algo, self._keeper.goal, step, path="the policy in training", **self._keeper.network())
        count = asked["eval_episodes"]
        lanes = make_lanes(self._algorithm, self._script, now.env_id, min(asked["eval_batch_size"], count), now)
        device = "cuda" if config.cuda else "cpu"
        policy = load_policy(now, self._script, lanes[0], asked["eval_deterministic"], device)
        player = Player(policy, lanes, 1.0, asked["eval_max_episode_steps"], self._pulse)
        try:
            return player.play(count, first_seed(now.params))
        finally:
            player.close()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Nothing of the training is changed inside: neither its random numbers, nor its clock, nor its frames."""
        rng, started = capture_rng(), time.time()
        try:
            with _unshown():
                yield
        finally:
            restore_rng(rng)
            main = vars(self._script)
            if "start_time" in main:  # steps per second are those of the training
                main["start_time"] += time.time() - started

    def _tell(self, episodes: list[Episode], score: float, step: int) -> None:
        for episode in episodes:
            emit.episode(
                self._played + episode.number,
                episode.total_return,
                episode.steps,
                agent_id=AGENT,
                terminated=episode.terminated,
                truncated=episode.truncated,
                global_step=step,
                episode_seed=episode.seed,
            )
        self._played += len(episodes)
        writer: Any = vars(self._script).get("writer")
        # What the script's writer is told is told to MOSAIC too.
        (writer.add_scalar if hasattr(writer, "add_scalar") else emit.metric)("eval/mean_return", score, step)

    def _keep(self, turn: int, step: int, score: float, seeds: list[int]) -> None:
        path, left_out = self._keeper.write(self._folder, turn, step)
        about = {"path": path.name, "step": step, "score": score, "episodes": len(seeds), "seeds": seeds}
        write_whole(self._folder / BEST_FILE, {**about, "env_id": self._keeper.goal, "version": 1})
        self._score = score
        for old in self._folder.glob("checkpoint-*.pt"):
            if old != path:
                old.unlink(missing_ok=True)
        emit.checkpoint_saved(path, step=step, best=True, score=score, left_out=left_out)

    def _known_score(self) -> float:
        """A custom script's phases share a folder: the best of an earlier one is still the best."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            about = json.loads((self._folder / BEST_FILE).read_text(encoding="utf-8"))
            if about["env_id"] == self._keeper.goal:
                return float(about["score"])
        return -math.inf


class _Stopping(Exception):
    """The training was asked to stop while it was evaluated."""


class _Pulse:
    """Takes the place of the player's heartbeat, which the runtime's process sends here."""

    def __init__(self, is_stopping: Callable[[], bool]) -> None:
        self._is_stopping = is_stopping

    def advance(self, steps: int) -> None:
        if self._is_stopping():
            raise _Stopping


def first_seed(params: Any) -> int:
    """1,000,000, or beyond the training's own seeds, should they lie there."""
    training = int(params.get("seed") or 0)
    end = training + int(params.get("num_envs") or 1)
    return end if end > FIRST_SEED else FIRST_SEED


@contextmanager
def _unshown() -> Iterator[None]:
    """Environments that are made inside are not shown: they would take the training's place in the frames."""
    before = os.environ.get(TelemetryEnv.FASTLANE_ONLY)
    os.environ[TelemetryEnv.FASTLANE_ONLY] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[TelemetryEnv.FASTLANE_ONLY]
        else:
            os.environ[TelemetryEnv.FASTLANE_ONLY] = before
