"""The orders in which runs are listed. Runs that an order does not tell apart are listed newest first."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mosaic.model.states import RunState
from mosaic.present.scores import is_rate_known, score

if TYPE_CHECKING:
    from mosaic.client import Run

STATES = list(RunState)


def _descending(value: float | None) -> tuple[bool, float]:
    """A sort key: high numbers first, runs without a number last."""
    return value is None, -(value or 0.0)


ORDERS: "dict[str, Callable[[Run], Any]]" = {
    "live first": lambda run: run.state.is_over,
    "newest": lambda run: 0,
    "name": lambda run: (run.name or run.worker_name).lower(),
    "state": lambda run: STATES.index(run.state),
    "return": lambda run: _descending(score(run)),
    "progress": lambda run: _descending(run.progress),
    "steps/s": lambda run: _descending(run.summary.steps_per_s if is_rate_known(run) else None),
}


def newest_first(runs: "Iterable[Run]") -> "list[Run]":
    # A run id begins with the time of the submission.
    return sorted(runs, key=lambda run: run.run_id, reverse=True)


def in_order(runs: "Iterable[Run]", order: str) -> "list[Run]":
    """The runs in one of ORDERS."""
    return sorted(newest_first(runs), key=ORDERS[order])


def sorted_by(runs: "Iterable[Run]", key: "Callable[[Run], Any]", is_descending: bool = False) -> "list[Run]":
    """The runs sorted by a column. Those without a value (None or empty) come last in both directions."""
    with_value: list[tuple[Any, Run]] = []
    without: list[Run] = []
    for run in newest_first(runs):
        value = key(run)
        if value is None or value == "":
            without.append(run)
        else:
            with_value.append((value, run))
    with_value.sort(key=lambda pair: pair[0], reverse=is_descending)
    return [run for _, run in with_value] + without
