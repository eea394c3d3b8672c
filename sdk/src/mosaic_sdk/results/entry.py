"""The numbers of one operator: averages over its episodes, and how quick it was."""

from typing import Any, Dict, List, Optional, Sequence

from mosaic_sdk.results.averages import iqm, mean, spread
from mosaic_sdk.results.games import Row, episode_key
from mosaic_sdk.results.resampling import mean_interval
from mosaic_sdk.results.rows import scores_of

NUMBERS = ("mean_return", "std_return", "min_return", "max_return", "mean_length", "iqm", "interval")


def statistics(
    rows: Sequence[Row], good: Sequence[Row], by_repetition: bool = False, tells_success: bool = True
) -> Dict[str, Any]:
    """The entry of one operator. `rows`: all of its rows; `good`: those of them that are averaged.

    `tells_success`: whether the environment ever says that an episode was a success. Then one that was cut short was
    none, even if nobody said so.
    Mean, IQM and interval are taken over the means of the seeds, the other numbers over the episodes.
    """
    quick = {"steps_per_s": _steps_per_s(good), "decision_ms": _decision_ms(good)}
    counts = {"episodes": _episodes(good), "failed": _episodes(rows) - _episodes(good)}
    if not good:
        return {**counts, **dict.fromkeys(NUMBERS), "success_rate": None, **quick}
    scores = list(scores_of(good, by_repetition).values()) or [row["return"] for row in good]
    returns, interval = [row["return"] for row in good], mean_interval(scores)
    return {
        **counts,
        "mean_return": mean(scores),
        "std_return": spread(returns),
        "min_return": min(returns),
        "max_return": max(returns),
        "mean_length": mean([row["length"] for row in good]),
        "iqm": iqm(scores),
        "interval": None if interval is None else list(interval),
        "success_rate": _success_rate(good) if tells_success else None,
        **quick,
    }


def _episodes(rows: Sequence[Row]) -> int:
    return len({episode_key(row) for row in rows})


def _success_rate(rows: Sequence[Row]) -> Optional[float]:
    ended = [row for row in rows if row["success"] is not None or row["truncated"]]
    known: List[float] = [float(bool(row["success"])) for row in ended]
    return mean(known) if known else None


def _steps_per_s(rows: Sequence[Row]) -> Optional[float]:
    """Of all episodes together, not the mean of their rates: a short episode counts less."""
    timed = [row for row in rows if row["steps_per_s"]]
    seconds = sum(row["length"] / row["steps_per_s"] for row in timed)
    return sum(row["length"] for row in timed) / seconds if seconds else None


def _decision_ms(rows: Sequence[Row]) -> Optional[float]:
    timed = [row for row in rows if row["decision_ms"] is not None]
    steps = sum(row["length"] for row in timed)
    return sum(row["decision_ms"] * row["length"] for row in timed) / steps if steps else None
