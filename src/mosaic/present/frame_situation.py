"""Why there is no frame of a run, in words."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mosaic.model.states import RunState

if TYPE_CHECKING:
    from mosaic.client import Run

NOT_STORED = "Frames are shown live and not stored."


@dataclass(frozen=True)
class Situation:
    title: str
    text: str = ""
    is_over: bool = False


def situation_of(run: "Run | None", is_deletion_known: bool, reason: str = "") -> Situation:
    """What a view without a frame shows. `reason`: why the worker publishes none, as the daemon knows it.

    No run: it is not listed yet, unless its deletion is known.
    """
    if run is None:
        return Situation("This run no longer exists", is_over=True) if is_deletion_known else Situation("Connecting…")
    if run.state.is_over:
        return Situation("The run is over", NOT_STORED, is_over=True)
    if run.state in (RunState.INIT, RunState.HANDSHAKE):
        waits = f"It waits for {run.waiting_for}." if run.waiting_for else "Frames appear as soon as it plays."
        return Situation("The run has not started yet", waits)
    return Situation("No frame yet", _in_window(reason, run.run_id) or "Waiting for the worker to publish one.")


def _in_window(reason: str, run_id: str) -> str:
    """The daemon's reason without its id and the command to type: both stand on the page already."""
    told = reason.partition(" See")[0]
    return told.replace(f"Run {run_id}", "The run").replace(f"run {run_id}", "this run")
