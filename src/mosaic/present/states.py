"""What a run's state means, in one line, for `show`, `watch` and `run`."""

from typing import TYPE_CHECKING

from mosaic.model.states import RunState
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run

MEANING = {
    RunState.INIT: "submitted, about to start",
    RunState.HANDSHAKE: "starting its process",
    RunState.READY: "started, no telemetry yet",
    RunState.EXECUTING: "running, telemetry is being stored",
    RunState.TERMINATED: "finished with exit code 0",
    RunState.FAULTED: "failed",
    RunState.CANCELLED: "cancelled by request",
}


def explain(run: "Run") -> str:
    """`READY: started, no telemetry yet`. The reason of this run replaces the general meaning of its state."""
    return f"{run.state}: {'; '.join(printable(part) for part in _parts(run) if part)}"


def _parts(run: "Run") -> tuple[str, ...]:
    reason = run.reason.strip().split("\n")[0]
    if run.origin:
        return (reason or "imported", run.telemetry)
    if run.state.is_over:
        # A clean exit has no reason. Telemetry may still be arriving.
        return (reason or MEANING[run.state], run.telemetry)
    if run.cancel_requested:
        return ("being cancelled", run.telemetry)
    if run.waiting_for:
        return (f"waiting for {run.waiting_for}",)
    return (MEANING[run.state], run.life, run.telemetry)
