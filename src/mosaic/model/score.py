"""How well a run does: the one number by which runs are sorted, compared and asked for."""

from typing import Protocol

from mosaic.model.rundir import EVALS


class Returns(Protocol):
    """What a score is made of; a RunSummary has it."""

    @property
    def eval_episodes(self) -> int: ...

    @property
    def eval_mean(self) -> float | None: ...

    @property
    def mean_return(self) -> float | None: ...

    @property
    def last_return(self) -> float | None: ...


def is_evaluation_in(area: str, relation: str) -> bool:
    """Whether a run with this area and this relation to its parent is an evaluation."""
    return area == EVALS or relation == "eval"


def score_in(area: str, relation: str, returns: Returns) -> float | None:
    """The mean of an evaluation, else the mean of the newest training episodes, else the last return."""
    if is_evaluation_in(area, relation):
        if returns.eval_mean is not None:
            return returns.eval_mean
        if returns.eval_episodes > 0:
            return None  # several operators have played, or every episode failed
    return returns.mean_return if returns.mean_return is not None else returns.last_return
