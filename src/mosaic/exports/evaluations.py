"""How good a run's policy is: its evaluations, else the evaluation during the training, else the training returns."""

import math
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mosaic.model.errors import UnknownRun
from mosaic.present.eval_results import read_summary
from mosaic.present.scores import is_evaluation

if TYPE_CHECKING:
    from mosaic.client import Run, TrainerClient

EVALUATION = "evaluation"
SELECTED = "evaluation during the training"
TRAINING = "training episodes"


@dataclass(frozen=True)
class Score:
    """The returns of some episodes."""

    kind: str  # EVALUATION, SELECTED or TRAINING
    episodes: int
    mean: float
    std: float | None  # of the episodes; None if only the mean is known
    low: float | None = None
    high: float | None = None
    seeds: str = ""
    run_id: str = ""  # of the evaluation
    checkpoint: str = ""  # the name of the checkpoint that was played
    deterministic: bool | None = None

    @property
    def text(self) -> str:
        """`487.10 +/- 20.30`, as model cards of reinforcement learning have it."""
        return f"{self.mean:.2f}" if self.std is None else f"{self.mean:.2f} +/- {self.std:.2f}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def scores_of(client: "TrainerClient", run: "Run", checkpoint: str) -> list[Score]:
    """The best founded first: evaluations of this checkpoint, then of others, newest first; training last."""
    evaluations = [score for child in evaluations_of(client, run) if (score := _evaluation(client, child))]
    evaluations.sort(key=lambda score: score.checkpoint != checkpoint)
    return [*evaluations, *_during_training(run)]


def evaluations_of(client: "TrainerClient", run: "Run") -> "list[Run]":
    """The evaluation runs of its policy in its own environment, newest first."""
    children = [child for run_id in run.children if (child := _run(client, run_id)) and child.relation == "eval"]
    return sorted(
        (child for child in children if not _is_elsewhere(run, child)), key=lambda child: child.run_id, reverse=True
    )


def _is_elsewhere(run: "Run", evaluation: "Run") -> bool:
    """Whether the run's own worker played another environment, such as what a world model dreams.

    Other workers may have another name for the same one.
    """
    facts = read_summary(evaluation)
    is_own = facts.get("worker") == run.worker_name
    return bool(is_own and run.env_id and facts.get("env_id") not in (None, "", run.env_id))


def _run(client: "TrainerClient", run_id: str) -> "Run | None":
    try:
        return client.get_run(run_id)
    except UnknownRun:  # deleted
        return None


def _evaluation(client: "TrainerClient", run: "Run") -> Score | None:
    """From the stored episodes; the summary only adds what they do not tell. None if nothing was played."""
    if not run.state.is_over or not is_evaluation(run):
        return None
    episodes = [event.to_dict() for event in client.stream_episodes(run.run_id)]
    played = [episode for episode in episodes if episode.get("failed") is not True]
    returns = [episode["total_reward"] for episode in played if math.isfinite(episode["total_reward"])]
    if not returns:
        return None
    facts = read_summary(run)
    seeds = [episode["episode_seed"] for episode in played if isinstance(episode.get("episode_seed"), int)]
    deterministic = facts.get("deterministic")
    return _score(
        EVALUATION,
        returns,
        seeds=f"{min(seeds)} to {max(seeds)}" if seeds else "",
        run_id=run.run_id,
        checkpoint=os.path.basename(str(facts.get("checkpoint") or "")),
        deterministic=deterministic if isinstance(deterministic, bool) else None,
    )


def _during_training(run: "Run") -> list[Score]:
    summary = run.summary
    found = []
    if summary.eval_mean is not None and not is_evaluation(run):
        found.append(Score(SELECTED, summary.eval_over, summary.eval_mean, None))
    recent = [value for value in summary.recent_returns if math.isfinite(value)]
    if recent and not is_evaluation(run):
        found.append(_score(TRAINING, recent))
    return found


def _score(kind: str, returns: list[float], **more: Any) -> Score:
    mean = sum(returns) / len(returns)
    # Of the population, as evaluate_policy of Stable-Baselines3 and other cards compute it.
    std = math.sqrt(sum((value - mean) ** 2 for value in returns) / len(returns))
    return Score(kind, len(returns), mean, std, min(returns), max(returns), **more)
