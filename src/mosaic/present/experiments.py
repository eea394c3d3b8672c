"""An experiment on a screen: its groups, how far it is, and what is wrong."""

import statistics
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mosaic.model.experiment import group_of, label, point_key
from mosaic.model.states import RunState
from mosaic.present.durations import format_duration
from mosaic.present.runs import note
from mosaic.present.scores import score
from mosaic.present.text import number, printable

if TYPE_CHECKING:
    from mosaic.client import Run

RUNNING = (RunState.HANDSHAKE, RunState.READY, RunState.EXECUTING)
WORDS: "tuple[tuple[str, tuple[RunState, ...]], ...]" = (  # in the order in which they are listed
    ("done", (RunState.TERMINATED,)),
    ("running", RUNNING),
    ("waiting", (RunState.INIT,)),
    ("FAULTED", (RunState.FAULTED,)),
    ("cancelled", (RunState.CANCELLED,)),
)


@dataclass
class RunGroup:
    """The runs that differ only in their seeds."""

    settings: Mapping[str, Any]  # the axes without the seed
    runs: "list[Run]" = field(default_factory=list)

    @property
    def label(self) -> str:
        return label(self.settings)


def current(runs: "Iterable[Run]") -> "list[Run]":
    """The newest run at each point, oldest first. Runs that were retried or resumed are replaced by their successors.

    Runs without a point, such as the driver of a search, are left out.
    """
    # Not by their ids: those of one call are of the same millisecond.
    ordered = sorted((run for run in runs if run.axes), key=lambda run: run.created_at)
    newest = {point_key(run.axes): run for run in ordered}
    first = {point_key(run.axes): run.created_at for run in reversed(ordered)}
    return [newest[key] for key in sorted(newest, key=first.__getitem__)]


def groups(runs: "Iterable[Run]") -> list[RunGroup]:
    found: dict[str, RunGroup] = {}
    for run in runs:
        settings = group_of(run.axes)
        found.setdefault(point_key(settings), RunGroup(settings)).runs.append(run)
    return list(found.values())


def tally(counts: Mapping[str, int]) -> dict[str, int]:
    """The number of runs by word, from numbers by the names of states; words without runs are left out."""
    found = {word: sum(counts.get(state.value, 0) for state in states) for word, states in WORDS}
    return {word: count for word, count in found.items() if count}


def states_of(runs: "Iterable[Run]") -> dict[str, int]:
    return dict(Counter(run.state.value for run in runs))


def describe_tally(counts: Mapping[str, int]) -> str:
    """`10 runs: 7 done, 2 running, 1 FAULTED`."""
    total = sum(counts.values())
    words = ", ".join(f"{count:,} {word}" for word, count in tally(counts).items())
    return f"{total:,} run{'' if total == 1 else 's'}{f': {words}' if words else ''}"


def progress(runs: "Sequence[Run]") -> float:
    """Between 0 and 1. A run that is over counts as done, however it ended."""
    if not runs:
        return 0.0
    return sum(1.0 if run.state.is_over else run.progress or 0.0 for run in runs) / len(runs)


def eta_s(runs: "Sequence[Run]") -> float | None:
    """Seconds until the last run ends, if as many run at a time as now; None if no run shows its speed.

    A run that waits takes as long as the median of the runs whose speed is known.
    """
    left = [run.eta_s for run in runs if not run.state.is_over and run.eta_s is not None]
    waiting = [run for run in runs if not run.state.is_over and run.eta_s is None]
    if not left and not waiting:
        return 0.0
    whole = [_whole_s(run) for run in runs if run.total_steps and run.summary.steps_per_s > 0]
    if waiting and not whole:
        return None
    work = sum(left) + len(waiting) * (statistics.median(whole) if whole else 0.0)
    at_once = max(1, sum(run.state in RUNNING for run in runs))
    return max([*left, work / at_once])


def _whole_s(run: "Run") -> float:
    """Seconds that the run needs, or needed, for all its steps."""
    at_its_speed = (run.total_steps or 0) / run.summary.steps_per_s
    # The speed of a run that is over is that of its last seconds, in which it may have saved its model.
    return min(at_its_speed, run.duration_s) if run.state.is_over else at_its_speed


def describe_progress(runs: "Sequence[Run]") -> str:
    """`62%, 3m20s left`; empty if all are over."""
    if all(run.state.is_over for run in runs):
        return ""
    left = eta_s(runs)
    return f"{progress(runs):.0%}{'' if left is None else f', {format_duration(left)} left'}"


def mean_return(runs: "Sequence[Run]") -> tuple[float | None, int]:
    """The mean of the runs' returns, and of how many runs: those that have none do not count."""
    values = [value for run in runs if run.state is not RunState.FAULTED and (value := score(run)) is not None]
    return (statistics.fmean(values) if values else None), len(values)


def return_cell(runs: "Sequence[Run]") -> str:
    """`214.3 (4 of 5)`: the mean, and of how many of the runs."""
    value, count = mean_return(runs)
    return "-" if value is None else f"{number(value)} ({count} of {len(runs)})"


def table(runs: "Sequence[Run]") -> tuple[list[str], list[list[str]], frozenset[int]]:
    """A row per group: headings, rows, and the columns that are aligned to the right. Only states that a run has."""
    found = groups(runs)
    axes = list(dict.fromkeys(key for group in found for key in group.settings))
    words = list(tally(states_of(runs)))
    headings = [*(printable(axis.rpartition(".")[2]) for axis in axes), "RUNS", *(word.upper() for word in words)]
    headings += ["PROGRESS", "MEAN RETURN (RUNS)"]
    rows = [[*(_cell(group.settings.get(axis)) for axis in axes), *_numbers(group.runs, words)] for group in found]
    return headings, rows, frozenset(range(len(axes), len(headings)))


def _cell(value: object) -> str:
    return printable(label({"": value})[1:]) if value is not None else "-"


def _numbers(runs: "Sequence[Run]", words: "Sequence[str]") -> list[str]:
    counts = tally(states_of(runs))
    each = [str(counts.get(word, "-")) for word in words]
    return [str(len(runs)), *each, f"{progress(runs):.0%}", return_cell(runs)]


def faults(runs: "Iterable[Run]") -> list[tuple[str, str, str]]:
    """The point, the id and the reason of each run that failed."""
    failed = [run for run in runs if run.state is RunState.FAULTED]
    return [(printable(label(run.axes)), run.run_id, note(run)) for run in failed]


def to_dict(runs: "Sequence[Run]") -> dict[str, Any]:
    """What `--json` shows of the runs."""
    return {
        "progress": progress(runs),
        "eta_s": eta_s(runs),
        "groups": [
            {
                "settings": dict(group.settings),
                "counts": states_of(group.runs),
                "progress": progress(group.runs),
                "mean_return": mean_return(group.runs)[0],
                "runs_with_return": mean_return(group.runs)[1],
                "runs": [run.run_id for run in group.runs],
            }
            for group in groups(runs)
        ],
        "faulted": [
            {"axes": run.axes, "run_id": run.run_id, "reason": run.reason}
            for run in runs
            if run.state is RunState.FAULTED
        ],
    }


def age(created_at: float) -> str:
    return format_duration(time.time() - created_at)
