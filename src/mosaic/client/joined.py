"""The curve of a run together with those of the runs it was resumed from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mosaic.client.events import Curve
from mosaic.client.run import Run
from mosaic.client.synchronous import TrainerClient
from mosaic.model.errors import UnknownRun

MOST_ANCESTORS = 1000


@dataclass(frozen=True)
class Part:
    """One run of a chain."""

    run_id: str
    first_step: int | None  # where it took over from its parent; None: unknown


def joined_curve(client: TrainerClient, run_id: str, name: str, points: int = 0) -> Curve:
    """The metric over the whole chain of runs; each run's part ends where the next run took over."""
    chain = ancestors(client, run_id)
    share = max(1, points // len(chain)) if points else 0
    curves: list[Curve] = []
    until: int | None = None
    for part in reversed(chain):  # newest first: each run's start is the end of its parent's part
        curves.append(client.query_curve(part.run_id, name, share, until))
        until = _last_of_parent(client, part, name, until)
    return join(name, curves[::-1])


def ancestors(client: TrainerClient, run_id: str) -> list[Part]:
    """The run and those it was resumed from, oldest first. A deleted run ends the chain."""
    chain: list[Part] = []
    run: Run | None = client.get_run(run_id)
    while run and len(chain) < MOST_ANCESTORS:
        chain.append(Part(run.run_id, _first_step(run)))
        run = _parent(client, run) if run.relation == "resume" else None
    return chain[::-1]


def join(name: str, curves: Sequence[Curve]) -> Curve:
    """Concatenate curves."""
    fields: dict[str, Any] = {
        field: [value for curve in curves for value in getattr(curve, field)]
        for field in ("step", "mean", "min", "max", "count")
    }
    axes = {curve.axis for curve in curves if curve.step}
    return Curve(name, **fields, axis=axes.pop() if len(axes) == 1 else "steps")


def _parent(client: TrainerClient, run: Run) -> Run | None:
    try:
        return client.get_run(run.parent_run_id) if run.parent_run_id else None
    except UnknownRun:
        return None


def _first_step(run: Run) -> int | None:
    metadata = (run.config or {}).get("metadata") or {}
    step = (metadata.get("parent_checkpoint") or {}).get("step")
    return step if isinstance(step, int) else None


def _last_of_parent(client: TrainerClient, part: Part, name: str, until: int | None) -> int | None:
    """The last step of the parent that belongs to the chain."""
    if part.first_step is None:
        steps = client.query_curve(part.run_id, name, 0, until).step
        return steps[0] - 1 if steps else until
    # A checkpoint's step is a count. If the worker numbers its steps from 0, this number is the child's first step.
    child_has_it = client.query_curve(part.run_id, name, 1, part.first_step).step
    return part.first_step - 1 if child_has_it else part.first_step
