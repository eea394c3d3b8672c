"""Runs whose policies can play in an evaluation, and the environments that runs have used."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mosaic.model.states import RunState
from mosaic.present.scores import is_evaluation, score_cell
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run

MOST = 200
EXAMPLES = ("CartPole-v1", "MiniGrid-Empty-5x5-v0", "FrozenLake-v1", "LunarLander-v3")
STARTED = (RunState.EXECUTING, RunState.TERMINATED, RunState.FAULTED, RunState.CANCELLED)


def trained_runs(runs: "Iterable[Run]") -> list[tuple[str, str]]:
    """Id and title of each, the newest first. Whether it has a checkpoint is known when the evaluation is submitted."""
    found = [run for run in runs if not is_evaluation(run) and run.state in STARTED]
    newest = sorted(found, key=lambda run: run.created_at, reverse=True)[:MOST]
    return [(run.run_id, title_of(run)) for run in newest]


def last_finished(runs: "Iterable[Run]") -> "Run | None":
    """The newest training that came to its end and names its environment."""
    found = [run for run in runs if not is_evaluation(run) and run.state is RunState.TERMINATED and run.env_id]
    return max(found, key=lambda run: run.created_at, default=None)


def title_of(run: "Run") -> str:
    """`grid · ppo · MiniGrid-Empty-5x5-v0 · return 0.93`."""
    score = score_cell(run)
    parts = (run.name or run.run_id[:13], run.algo, run.env_id, f"return {score}" if score else "")
    return printable(" · ".join(filter(None, parts)))


def known_envs(runs: "Iterable[Run]") -> list[str]:
    """The environments of runs, the newest first, then examples."""
    newest = sorted(runs, key=lambda run: run.created_at, reverse=True)
    return list(dict.fromkeys([*(printable(run.env_id) for run in newest if run.env_id), *EXAMPLES]))[:50]
