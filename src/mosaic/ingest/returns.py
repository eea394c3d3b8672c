"""The returns of a run's episodes in bounded memory: the newest ones, a trace of the whole run, its evaluations.

Returns are added one at a time, so the same episodes in the same order give the same numbers in batches of any size.
A snapshot saves this object unchanged.
"""

import json
import math

import msgspec

from mosaic.ingest.rows import AGENT, EXTRA, GLOBAL_STEP, RETURN, Row, number
from mosaic.model.interval import t_quantile
from mosaic.model.run import RunSummary

EVALUATION = "eval"  # the agent of evaluation episodes in a training run
RECENT = 60  # single returns in a summary
MEAN_OVER = 100  # episodes in the mean
TRACE = 64  # maximum number of buckets in a trace
EVAL_RECENT = 20  # episodes in the mean if evaluations are single episodes


class Spread(msgspec.Struct, array_like=True):
    """Mean and confidence interval of numbers added one by one (Welford's algorithm)."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of the distances from the mean

    def add(self, value: float) -> None:
        self.n += 1
        distance = value - self.mean
        self.mean += distance / self.n
        self.squares += distance * (value - self.mean)

    @property
    def interval(self) -> "float | None":
        """Half the width of the mean's 95 % confidence interval; None for fewer than two numbers."""
        if self.n < 2:
            return None
        return t_quantile(self.n - 1) * math.sqrt(self.squares / (self.n - 1) / self.n)


class Trace(msgspec.Struct, array_like=True):
    """Means of equal numbers of consecutive returns; neighbours are merged when there are too many."""

    width: int = 1  # returns per bucket
    filled: int = 0  # in the last bucket
    totals: list[float] = msgspec.field(default_factory=list)
    counts: list[int] = msgspec.field(default_factory=list)  # of those that are not NaN

    def extend(self, values: list[float]) -> None:
        here = 0
        while here < len(values):
            if self.filled == self.width or not self.totals:
                self._begin_bucket()
            fits = values[here : here + self.width - self.filled]
            self._fill(fits)
            here += len(fits)

    def means(self) -> list[float]:
        return [total / count if count else math.nan for total, count in zip(self.totals, self.counts, strict=True)]

    def _fill(self, values: list[float]) -> None:
        # One by one: sum() rounds differently, and then the result would depend on the batches.
        total, count = self.totals[-1], self.counts[-1]
        for value in values:
            if value == value:
                total += value
                count += 1
        self.totals[-1], self.counts[-1] = total, count
        self.filled += len(values)

    def _begin_bucket(self) -> None:
        if len(self.totals) == TRACE:
            self.totals = [a + b for a, b in zip(self.totals[::2], self.totals[1::2], strict=True)]
            self.counts = [a + b for a, b in zip(self.counts[::2], self.counts[1::2], strict=True)]
            self.width *= 2
        self.totals.append(0.0)
        self.counts.append(0)
        self.filled = 0


class Returns(msgspec.Struct, array_like=True):
    """The returns of one run. In an evaluation run every episode is an evaluation episode."""

    is_evaluation: bool = False
    recent: list[float] = msgspec.field(default_factory=list)  # the newest, at most MEAN_OVER
    trace: Trace = msgspec.field(default_factory=Trace)
    evaluated: int = 0  # evaluation episodes
    evals: list["tuple[int | None, float]"] = msgspec.field(default_factory=list)  # (global_step, return), the newest
    whole: Spread = msgspec.field(default_factory=Spread)  # of an evaluation run
    agent: "str | None" = None  # the first one of an evaluation run
    is_mixed: bool = False  # an evaluation run with several agents: operators, or seats in a game

    def fold(self, rows: list[Row]) -> None:
        """Add rows of `episodes`."""
        if self.is_evaluation:
            self._fold_own(rows)
            self.evaluated += len(rows)
            self._fold_whole(rows)
            return
        evals = [(row[GLOBAL_STEP], number(row[RETURN])) for row in rows if row[AGENT] == EVALUATION]
        self._fold_own([row for row in rows if row[AGENT] != EVALUATION] if evals else rows)
        self.evaluated += len(evals)
        self.evals = [*self.evals, *evals][-MEAN_OVER:]

    def _fold_whole(self, rows: list[Row]) -> None:
        for row in rows:
            self.agent = row[AGENT] if self.agent is None else self.agent
            self.is_mixed = self.is_mixed or row[AGENT] != self.agent
            if not _has_failed(row):
                self.whole.add(number(row[RETURN]))

    def _fold_own(self, rows: list[Row]) -> None:
        values = [number(row[RETURN]) for row in rows]
        self.trace.extend(values)
        self.recent = [*self.recent, *values][-MEAN_OVER:]

    def fill(self, summary: RunSummary) -> None:
        """Write the statistics into a summary."""
        summary.recent_returns = self.recent[-RECENT:]
        summary.last_return = self.recent[-1] if self.recent else None
        summary.return_trace = self.trace.means()
        trained = [] if self.is_evaluation else self.recent
        summary.mean_over = len(trained)
        summary.mean_return = sum(trained) / len(trained) if trained else None
        summary.eval_episodes = self.evaluated
        spread = self._newest_evaluation()
        summary.eval_over = spread.n
        summary.eval_mean = spread.mean if spread.n else None
        summary.eval_interval = spread.interval

    def _newest_evaluation(self) -> Spread:
        """Statistics of the whole run if it is an evaluation, else of the newest evaluation at one env step."""
        if self.is_evaluation:
            # The mean over different players would not be true of any of them.
            return Spread() if self.is_mixed else self.whole
        together = _trailing(self.evals, len(self.evals))
        before = _trailing(self.evals, len(self.evals) - together)
        if together == 1 and before <= 1:
            # An env that evaluates during the training: each episode plays a slightly newer policy.
            together = EVAL_RECENT
        spread = Spread()
        for _, value in self.evals[-together:] if together else ():
            spread.add(value)
        return spread


def _trailing(evals: "list[tuple[int | None, float]]", end: int) -> int:
    """The number of episodes before `end` that ended at the same env step as the last of them."""
    count = 0
    while count < end and evals[end - 1 - count][0] == evals[end - 1][0]:
        count += 1
    return count


def _has_failed(row: Row) -> bool:
    """Whether an episode of an evaluation was not played to its end: its return says nothing about the policy."""
    if b'"failed"' not in row[EXTRA]:
        return False
    try:
        return json.loads(row[EXTRA]).get("failed") is True
    except (ValueError, RecursionError):
        return False
