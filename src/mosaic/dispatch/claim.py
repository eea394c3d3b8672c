"""Which waiting runs may start now, and with which GPUs. First come, first served; pure decisions, no I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mosaic.model.run import RunRecord


@dataclass(frozen=True)
class Start:
    run_id: str
    gpus: tuple[str, ...]


@dataclass(frozen=True)
class Wait:
    run_id: str
    waiting_for: str


def decide(
    waiting: Sequence[RunRecord], running: int, max_runs: int, free_gpus: Sequence[str]
) -> Iterator[Start | Wait]:
    """One decision per waiting run, oldest first.

    A run that waits for GPUs does not hold up runs that need none; but none after it gets a GPU, or it might starve.
    """
    free = list(free_gpus)
    for run in waiting:
        wanted = run.gpus.requested
        if running >= max_runs:
            yield Wait(run.run_id, f"one of the {max_runs} places to run in")
            continue
        if run.gpus.mandatory and wanted > len(free):
            yield Wait(run.run_id, f"{wanted} GPU{'s' * (wanted > 1)} ({len(free)} free)")
            free = []
            continue
        granted, free = free[:wanted], free[wanted:]
        running += 1
        yield Start(run.run_id, tuple(granted))
