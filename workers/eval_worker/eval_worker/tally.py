"""One episode of a lane: its agents' returns, and how it ended."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from eval_worker.game import Act, Opening, Turn


@dataclass
class Score:
    """What one agent has so far."""

    operator: str
    total: float = 0.0
    terminated: bool = False
    truncated: bool = False
    decisions: int = 0
    decision_ms: float = 0.0

    def add(self, act: Act) -> None:
        self.total += act.reward
        self.terminated = self.terminated or act.terminated
        self.truncated = self.truncated or act.truncated
        if act.latency_ms is not None:
            self.decisions += 1
            self.decision_ms += act.latency_ms


@dataclass
class Tally:
    """The tally of an episode. An episode that could not begin has an empty opening."""

    index: int
    seed: int
    opening: Opening
    steps: int = 0
    success: bool | None = None
    elapsed_s: float = 0.0
    is_over: bool = False
    scores: dict[str, Score] = field(init=False)

    def __post_init__(self) -> None:
        self.scores = {agent: Score(operator) for agent, operator in self.opening.operators.items()}

    def add(self, turn: Turn) -> None:
        for act in turn.acts:
            self.scores[act.agent_id].add(act)
        self.steps += 1
        self.elapsed_s += turn.elapsed_s
        self.success = turn.success if turn.success is not None else self.success
        if turn.is_done:
            self.is_over = True
            for score in self.scores.values():
                score.truncated = score.truncated or (turn.is_cut and not score.terminated)

    @property
    def returns(self) -> dict[str, float]:
        return {agent: score.total for agent, score in self.scores.items()}

    def rows(self, reason: str, failed: bool) -> Iterator[Mapping[str, Any]]:
        """A row for each agent, as EvalResults takes it."""
        for agent, score in self.scores.items():
            yield {
                "operator": score.operator,
                "agent_id": agent,
                "episode_index": self.index,
                "seed": self.seed,
                "return": score.total,
                "length": self.steps,
                "success": self.success,
                "terminated": score.terminated,
                "truncated": score.truncated,
                "reason": reason,
                "failed": failed,
                "steps_per_s": self.steps / self.elapsed_s if self.elapsed_s > 0 else None,
                "decision_ms": round(score.decision_ms / score.decisions, 3) if score.decisions else None,
                "duration_s": round(self.elapsed_s, 6),
            }
