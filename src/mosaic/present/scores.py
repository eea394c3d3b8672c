"""How well a run does, as text and sparklines: a mean, or the last episode where there is no mean."""

from typing import TYPE_CHECKING

from mosaic.model.score import is_evaluation_in, score_in
from mosaic.model.states import RunState
from mosaic.present.text import number, sparkline

if TYPE_CHECKING:
    from mosaic.client import Run


def is_evaluation(run: "Run") -> bool:
    return is_evaluation_in(run.area, run.relation)


def is_search(run: "Run") -> bool:
    """Whether it is the driver of a search, whose steps are trials."""
    return run.worker_name == "search" and bool(run.experiment)


def has_no_mean(run: "Run") -> bool:
    """Whether an evaluation run has episodes but no mean: several operators have played, or every episode failed."""
    return is_evaluation(run) and run.summary.eval_episodes > 0 and run.summary.eval_mean is None


def score(run: "Run") -> float | None:
    """The number by which runs are sorted and compared."""
    return score_in(run.area, run.relation, run.summary)


def score_cell(run: "Run") -> str:
    """The score in a table: 412.3, or 412.3 ±20 for an evaluation run."""
    value = score(run)
    if value is None:
        return ""
    s = run.summary
    interval = s.eval_interval if is_evaluation(run) and s.eval_mean is not None else None
    return f"{number(value)} ±{margin(interval)}" if interval is not None else number(value)


def describe_score(run: "Run") -> str:
    """`mean return 412.3 over the last 100 episodes`; empty before the end of the first episode."""
    s = run.summary
    if has_no_mean(run):
        return f"{count(s.eval_episodes, 'episode')} without a common mean"
    if is_evaluation(run) and s.eval_mean is not None:
        return f"mean return {_with_interval(run)} over {count(s.eval_episodes, 'episode')}"
    parts = []
    if s.mean_return is not None:
        parts.append(f"mean return {number(s.mean_return)} over the last {count(s.mean_over, 'episode')}")
    elif s.last_return is not None:
        parts.append(f"last return {number(s.last_return)}")
    if s.eval_mean is not None:
        parts.append(f"newest evaluation {_with_interval(run)}")
    return ", ".join(parts)


def _with_interval(run: "Run") -> str:
    s = run.summary
    return number(s.eval_mean) + (f" ± {margin(s.eval_interval)}" if s.eval_interval is not None else "")


def margin(half: float) -> str:
    """Half an interval with two significant digits: 0.56, 12, 130; never 1.3e+02."""
    return f"{half:.2g}" if half < 100 else f"{half:.0f}"


def trace(run: "Run", width: int) -> str:
    """The returns of the whole run in at most `width` characters."""
    return sparkline(run.summary.return_trace or run.summary.recent_returns, width)


def env_steps(run: "Run") -> int:
    """How many steps the environments have taken, which is not the number of stored steps: many workers report few."""
    return run.summary.env_steps


def step_word(run: "Run") -> str:
    """What `env_steps` counts. If all that is known is the axis of curves, its steps may be epochs or batches."""
    s = run.summary
    if is_search(run):
        return "trial"
    return "step" if s.metrics and not (s.steps or s.episodes or run.total_steps) else "env step"


def is_rate_known(run: "Run") -> bool:
    """Whether to show a rate: before the second report, in an evaluation and in a stalled run there is none."""
    return run.state is RunState.EXECUTING and run.summary.steps_per_s > 0


def describe_stored(run: "Run") -> str:
    """`4,096 step rows, 87 episodes, 40 metric rows stored`."""
    s = run.summary
    counts = ((s.steps, "step row"), (s.episodes, "episode"), (s.metrics, "metric row"))
    stored = ", ".join(count(number, kind) for number, kind in counts if number)
    return f"{stored} stored" if stored else "nothing stored"


def count(number: int, kind: str) -> str:
    return f"{number:,} {kind}{'' if number == 1 else 's'}"
