"""How a run scores, in words and small pictures: means, never a single episode where there is a mean."""

from typing import TYPE_CHECKING

from mosaic.cli.terminal_text import number, sparkline
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from mosaic.client import Run


def is_evaluation(run: "Run") -> bool:
    return run.area == "evals" or run.relation == "eval"


def score(run: "Run") -> float | None:
    """The number to sort and compare by."""
    s = run.summary
    if is_evaluation(run) and s.eval_mean is not None:
        return s.eval_mean
    return s.mean_return if s.mean_return is not None else s.last_return


def score_cell(run: "Run") -> str:
    """For a column: 412.3, or 412.3 ±20 of an evaluation run."""
    value = score(run)
    if value is None:
        return ""
    s = run.summary
    interval = s.eval_interval if is_evaluation(run) and s.eval_mean is not None else None
    return f"{number(value)} ±{margin(interval)}" if interval is not None else number(value)


def score_words(run: "Run") -> str:
    """`mean return 412.3 over the last 100 episodes`; empty when no episode is over."""
    s = run.summary
    if is_evaluation(run) and s.eval_mean is not None:
        return f"mean return {_with_interval(run)} over {count(s.eval_episodes, 'episode')}"
    words = []
    if s.mean_return is not None:
        words.append(f"mean return {number(s.mean_return)} over the last {count(s.mean_over, 'episode')}")
    elif s.last_return is not None:
        words.append(f"last return {number(s.last_return)}")
    if s.eval_mean is not None:
        words.append(f"newest evaluation {_with_interval(run)}")
    return ", ".join(words)


def _with_interval(run: "Run") -> str:
    s = run.summary
    return number(s.eval_mean) + (f" ± {margin(s.eval_interval)}" if s.eval_interval is not None else "")


def margin(half: float) -> str:
    """Half an interval with the two digits that mean something: 0.56, 12, 130; never 1.3e+02."""
    return f"{half:.2g}" if half < 100 else f"{half:.0f}"


def trace(run: "Run", width: int) -> str:
    """The returns of the whole run in at most `width` characters."""
    return sparkline(run.summary.return_trace or run.summary.recent_returns, width)


def env_steps(run: "Run") -> int:
    """How far the env has gone. Many workers tell that without telling every step; some number steps per episode."""
    return run.summary.env_steps


def is_rate_known(run: "Run") -> bool:
    """A first report has no rate yet, and an evaluation has none; a stalled run is told in words."""
    return run.state is RunState.EXECUTING and run.summary.steps_per_s > 0


def stored_words(run: "Run") -> str:
    """`4,096 step rows, 87 episodes, 40 metric rows stored`."""
    s = run.summary
    counts = ((s.steps, "step row"), (s.episodes, "episode"), (s.metrics, "metric row"))
    told = ", ".join(count(number, kind) for number, kind in counts if number)
    return f"{told} stored" if told else "nothing stored"


def count(number: int, kind: str) -> str:
    return f"{number:,} {kind}{'' if number == 1 else 's'}"
