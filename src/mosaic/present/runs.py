"""A run in a listing: the cells whose text is the same on every screen."""

from typing import TYPE_CHECKING

from mosaic.model.states import RunState
from mosaic.present.autopsy import autopsy
from mosaic.present.scores import has_no_mean, is_evaluation, score_cell
from mosaic.present.states import MEANING
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run


def return_cell(run: "Run") -> str:
    """The mean return and the number of episodes: `214.3 (100)`, or `481.2 ±12 (20)` for an evaluation run.

    An evaluation of several operators has no mean, only the number: `(60)`.
    """
    if has_no_mean(run):
        return f"({run.summary.eval_episodes})"
    over = run.summary.eval_over if is_evaluation(run) else run.summary.mean_over
    return f"{score_cell(run)} ({over})" if over else score_cell(run) or "-"


def note(run: "Run") -> str:
    """What a listing shows for a run besides its state: only the most important fact."""
    ending = "being cancelled" if run.cancel_requested and not run.state.is_over else ""
    # A reason that only repeats the meaning of the state is left out.
    reason = "" if run.state is RunState.TERMINATED or run.reason == MEANING[run.state] else run.reason
    if failure := autopsy(run):
        reason = failure.sentence  # with the exception, if its output ends with one
    notes = (ending, run.waiting, run.life, run.telemetry, reason)
    return printable(next(filter(None, notes), "").split("\n")[0])
