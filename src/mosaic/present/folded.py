"""A list of runs in which the runs of one experiment are folded into one line."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from mosaic.model.listed import RunSummary
from mosaic.model.states import RunState
from mosaic.present.experiments import RUNNING, current, describe_tally, mean_return, states_of

if TYPE_CHECKING:
    from mosaic.client import Run

PREFIX = "experiment:"  # of the id of a line that stands for an experiment


def name_of_line(run_id: str) -> str:
    """The experiment that a line stands for; empty for the line of a run."""
    return run_id.removeprefix(PREFIX) if run_id.startswith(PREFIX) else ""


def folded(runs: "Iterable[Run]", unfolded: Collection[str] = ()) -> "list[Run]":
    """The runs in their order; an experiment with several has one line, and below it its runs if it is unfolded."""
    members: defaultdict[str, list[Run]] = defaultdict(list)
    listed = list(runs)
    for run in listed:
        if run.experiment:
            members[run.experiment].append(run)
    lines: list[Run] = []
    for run in listed:
        group = members.get(run.experiment, [])
        if len(group) < 2:
            lines.append(run)
        elif group[0] is run:
            lines.append(line_of(group, run.experiment in unfolded))
            lines += group if run.experiment in unfolded else []
    return lines


def line_of(group: "list[Run]", is_unfolded: bool = False) -> "Run":
    """An experiment in the form of a run: its steps, its rate and its mean return are those of all its runs."""
    runs = current(group) or group
    name = group[0].experiment
    totals = [run.total_steps for run in runs]
    return replace(
        group[0],
        run_id=f"{PREFIX}{name}",
        name=f"{'▾' if is_unfolded else '▸'} {name}  {describe_tally(states_of(runs))}",
        state=_state(runs),
        reason="",
        waiting_for="",
        life="",
        telemetry="",
        cancel_requested=False,
        created_at=min(run.created_at for run in runs),
        updated_at=max(run.updated_at for run in runs),
        total_steps=sum(total for total in totals if total) if all(totals) else None,
        granted=tuple(uuid for run in runs for uuid in run.granted),
        summary=RunSummary(
            env_steps=sum(_steps(run) for run in runs),
            steps_per_s=sum(run.summary.steps_per_s for run in runs if run.state is RunState.EXECUTING),
            mean_return=mean_return(runs)[0],
        ),
    )


def _steps(run: "Run") -> int:
    """A run that has finished has made all its steps, even if it stopped at the last whole batch."""
    return (run.total_steps or 0) if run.state is RunState.TERMINATED else run.summary.env_steps


def _state(runs: "list[Run]") -> RunState:
    """What a glance should show: that something runs, waits or failed."""
    states = {run.state for run in runs}
    if states & set(RUNNING):
        return RunState.EXECUTING
    order = (RunState.INIT, RunState.FAULTED, RunState.CANCELLED, RunState.TERMINATED)
    return next(state for state in order if state in states)
