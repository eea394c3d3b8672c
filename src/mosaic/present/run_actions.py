"""What can be done with the selected runs, and why not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mosaic.present.run_cells import name_of
from mosaic.present.scores import count, is_evaluation
from mosaic.present.text import size

if TYPE_CHECKING:
    from mosaic.client import Run

Runs = Sequence["Run"]
NOTHING = "Select a run first."
LONGEST_NAME = 60


@dataclass(frozen=True)
class RunAction:
    key: str
    text: str
    why_not: Callable[[Runs, str], str]  # the selected runs and the host → the reason, or empty
    about: str  # its tooltip while it applies
    shortcut: str = ""
    is_in_bar: bool = False  # also a button, not only in the menu


def _exactly_one(runs: "Runs", _: str = "") -> str:
    return NOTHING if not runs else "" if len(runs) == 1 else "Select only one run."


def _no_open(runs: "Runs", _: str) -> str:
    return "" if runs else NOTHING


def _no_cancel(runs: "Runs", _: str) -> str:
    if not runs:
        return NOTHING
    if all(run.state.is_over for run in runs):
        return "The run is over." if len(runs) == 1 else "The selected runs are over."
    return "" if to_cancel(runs) else "It is already being cancelled."


def _no_delete(runs: "Runs", _: str) -> str:
    if not runs:
        return NOTHING
    if to_delete(runs):
        return ""
    return (
        "A live run cannot be deleted. Cancel it first."
        if len(runs) == 1
        else "The selected runs are live. Cancel them first."
    )


def _no_resume(runs: "Runs", _: str) -> str:
    if reason := _exactly_one(runs):
        return reason
    if not runs[0].state.is_over:
        return "The run is still live."
    return "An evaluation cannot be resumed." if is_evaluation(runs[0]) else ""


def _no_evaluation(runs: "Runs", _: str) -> str:
    if reason := _exactly_one(runs):
        return reason
    return "This is an evaluation. Select the run that was trained." if is_evaluation(runs[0]) else ""


def _no_folder(runs: "Runs", host: str) -> str:
    return _exactly_one(runs) or (f"The folder is on {host}, not on this machine." if host else "")


def _no_comparison(runs: "Runs", _: str) -> str:
    return "" if len(runs) > 1 else "Select two or more runs to compare them."


ACTIONS = (
    RunAction("open", "Open", _no_open, "Open the run in a tab of its own", "Return"),
    RunAction("cancel", "Cancel…", _no_cancel, "End the run; what it has stored is kept", "", is_in_bar=True),
    RunAction(
        "duplicate", "Duplicate…", _exactly_one, "Start a new run with the same settings", "Ctrl+D", is_in_bar=True
    ),
    RunAction("resume", "Resume…", _no_resume, "Continue from a checkpoint in a new run", "", is_in_bar=True),
    RunAction("evaluate", "Evaluate…", _no_evaluation, "Evaluate a checkpoint of the run", "", is_in_bar=True),
    RunAction(
        "compare", "Compare", _no_comparison, "Show the curves of the selected runs together", "", is_in_bar=True
    ),
    RunAction("operators", "Open in Operators", _exactly_one, "Watch an evaluation, or play beside a trained run"),
    RunAction("folder", "Open folder", _no_folder, "Show the run's files"),
    RunAction("copy_id", "Copy id", _no_open, "Copy the id of the run"),
    RunAction("copy", "Copy rows", _no_open, "Copy the rows as tab-separated text", "Ctrl+C"),
    RunAction("delete", "Delete…", _no_delete, "Delete the run and all its files", "Del", is_in_bar=True),
)


def to_cancel(runs: "Runs") -> "list[Run]":
    return [run for run in runs if not run.state.is_over and not run.cancel_requested]


def to_delete(runs: "Runs") -> "list[Run]":
    return [run for run in runs if run.state.is_over]


def cancel_question(runs: "Runs") -> str:
    """One question for all selected runs."""
    chosen = to_cancel(runs)
    kept = "What it has stored is kept." if len(chosen) == 1 else "What they have stored is kept."
    return f"Cancel {_which(chosen, runs)}? {kept}"


def delete_question(runs: "Runs", used_bytes: int | None) -> str:
    """`used_bytes`: None if it is unknown, because the runs are on another machine."""
    freed = "" if used_bytes is None else f" This frees {size(used_bytes)}."
    return f"Delete {_which(to_delete(runs), runs)} with telemetry, logs and checkpoints?{freed} It cannot be undone."


def _which(chosen: "Runs", selected: "Runs") -> str:
    if len(chosen) < len(selected):
        return f"{len(chosen)} of the {len(selected)} selected runs"
    return f'"{short_name(chosen[0])}"' if len(chosen) == 1 else count(len(chosen), "run")


def short_name(run: "Run") -> str:
    name = name_of(run)
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "…"
