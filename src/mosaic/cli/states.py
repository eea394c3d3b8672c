"""What a run's state means, in one line: for `watch`, `show` and whoever follows a run."""

from typing import TYPE_CHECKING

from mosaic.cli.terminal_text import printable
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from mosaic.client import Run

MEANING = {
    RunState.INIT: "submitted, about to start",
    RunState.HANDSHAKE: "starting its process",
    RunState.READY: "started, nothing measured yet",
    RunState.EXECUTING: "running, telemetry is being stored",
    RunState.TERMINATED: "finished by itself, exit code 0",
    RunState.FAULTED: "failed",
    RunState.CANCELLED: "cancelled by request",
}


def explain(run: "Run") -> str:
    """`READY: started, nothing measured yet`; what is special about this run comes before what its state means."""
    return f"{run.state}: {'; '.join(printable(word) for word in _words(run) if word)}"


def _words(run: "Run") -> tuple[str, ...]:
    why = run.reason.strip().split("\n")[0]
    if run.state.is_over:
        # A clean end has no reason of its own; its telemetry may still be on its way.
        return (why or MEANING[run.state], run.telemetry)
    if run.cancel_requested:
        return ("being cancelled", run.telemetry)
    if run.waiting_for:
        return (f"waiting for {run.waiting_for}",)
    return (MEANING[run.state], run.life, run.telemetry)
