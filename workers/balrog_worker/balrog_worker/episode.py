"""One episode: the agent acts until the game is over or its steps are used up."""

import os
import time
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.emit import to_json
from mosaic_sdk.heartbeat import Heartbeat

from balrog_worker.agents import Agent
from balrog_worker.games.game import Game
from balrog_worker.plan import Episode

FOLDER = "trajectories"


def play(episode: Episode, game: Game, agent: Agent, heart: Heartbeat, trajectory: "Trajectory") -> dict[str, Any]:
    """The episode's row: what it reached, and what it took."""
    began = time.monotonic()
    view, _ = game.reset(seed=episode.seed)
    agent.begin(episode, game)
    total, length, invalid, tokens_in, tokens_out = 0.0, 0, 0, 0, 0
    cost: float | None = None
    terminated = truncated = False
    while not (terminated or truncated):
        decision = agent.act(view, length)
        seen = view
        view, reward, terminated, truncated, _ = game.step(decision.action)
        total, invalid = total + reward, invalid + (not decision.is_valid)
        tokens_in, tokens_out = tokens_in + decision.tokens_in, tokens_out + decision.tokens_out
        cost = cost if decision.cost is None else (cost or 0.0) + decision.cost
        emit.step(length, reward, episode_index=episode.index, action=decision.action, progression=game.progress)
        trajectory.write(step=length, seen=seen, decision=decision, reward=reward)
        length += 1
        truncated = truncated or (not terminated and length >= game.max_steps)
        heart.advance()
    return {
        "task": str(episode.task),
        "environment": episode.task.environment,
        "seed": episode.seed,
        "progression": game.progress,
        "return": total,
        "length": length,
        "terminated": terminated,
        "truncated": truncated,
        "invalid": invalid,
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "cost": cost,
        "duration_s": round(time.monotonic() - began, 3),
        "details": game.details(),
    }


class Trajectory:
    """trajectories/<task>/<seed>.jsonl: what the agent saw, answered and did; nothing if it is switched off."""

    def __init__(self, run_dir: str, episode: Episode, is_on: bool) -> None:
        self._file: Any = None
        if is_on:
            folder = os.path.join(run_dir, FOLDER, episode.task.environment, episode.task.name)
            os.makedirs(folder, exist_ok=True)
            # Truncated: an interrupted episode is played again from its beginning.
            self._file = open(os.path.join(folder, f"{episode.seed}.jsonl"), "w", encoding="utf-8")  # noqa: SIM115

    def write(self, *, step: int, seen: Any, decision: Any, reward: float) -> None:
        if self._file is None:
            return
        row = {"step": step, "view": seen.lasting, "passing": seen.passing, "answer": decision.text}
        row.update(action=decision.action, valid=decision.is_valid, reward=reward)
        self._file.write(to_json(row) + "\n")

    def __enter__(self) -> "Trajectory":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
