"""Runs, their moves and summaries, experiments: model ↔ protobuf. No other module converts these.

Telemetry has no model class: it is protobuf from the tailer to the client, and ingest/rows.py stores it.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.model.errors import BadConfig
from mosaic.model.experiment import Experiment
from mosaic.model.listed import Move, RunSummary
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.bounds import LISTED_BYTES, bound, some_values

if TYPE_CHECKING:
    from mosaic.model.run import RunRecord


def state_to_wire(state: RunState) -> str:
    return state.value  # an enum takes its value's name


def state_from_wire(state: int) -> RunState:
    """The state; BadConfig for an unknown number."""
    name = pb.State.Name(state) if state in pb.State.values() else ""
    if name not in RunState.__members__:
        raise BadConfig("states", f"{state} is not a valid state.")
    return RunState[name]


def run_to_wire(
    record: "RunRecord",
    run_dir: Path,
    summary: RunSummary | None = None,
    life: str = "",
    most_bytes: int = LISTED_BYTES,
) -> pb.RunInfo:
    """The run in about `most_bytes`: see bounds.py."""
    info = pb.RunInfo(
        run_id=record.run_id,
        name=record.name,
        area=record.area,
        worker_name=record.worker_name,
        state=state_to_wire(record.state),
        reason=record.reason,
        attempt=record.attempt,
        created_at=record.created_at,
        updated_at=record.updated_at,
        gpus_requested=record.gpus.requested,
        gpus_mandatory=record.gpus.mandatory,
        granted=record.granted,
        tags=record.tags,
        # The worker's own total, from its heartbeats, comes first: it may choose it, or round it to whole batches.
        total_steps=(summary and max(0, summary.total_steps)) or record.total_steps or None,
        cancel_requested=record.cancel_requested,
        waiting_for=record.waiting_for,
        held_by=record.held_by,
        on=record.on,
        node=record.node,
        job=record.job,
        telemetry=record.telemetry,
        revision=record.revision,
        summary=summary_to_wire(summary, most_bytes // 2) if summary else None,
        run_dir=str(run_dir),
        life=life,
        time_limit_s=record.limits.time_s,
        cpus=record.resources.cpus,
        memory_mb=record.resources.memory_mb,
        parent_run_id=record.lineage.parent_run_id,
        relation=record.lineage.relation,
        settings_note=record.settings_note,
        algo=record.task.algo,
        env_id=record.task.env_id,
        seed=record.task.seed,
        experiment=record.membership.experiment,
        axes_json=json.dumps(dict(record.membership.axes)) if record.membership.axes else "",
        note=record.note,
        origin=record.origin,
    )
    return bound(info, most_bytes)


def experiment_to_wire(experiment: Experiment) -> pb.ExperimentInfo:
    return pb.ExperimentInfo(
        name=experiment.name,
        document_json=json.dumps(experiment.document),
        note=experiment.note,
        created_at=experiment.created_at,
        is_reconstructed=experiment.is_reconstructed,
        runs_by_state=experiment.counts,
    )


def experiment_from_wire(wire: pb.ExperimentInfo) -> Experiment:
    return Experiment(
        name=wire.name,
        document=json.loads(wire.document_json) if wire.document_json else {},
        note=wire.note,
        created_at=wire.created_at,
        is_reconstructed=wire.is_reconstructed,
        counts=dict(wire.runs_by_state),
    )


def move_to_wire(move: Move) -> pb.Move:
    old = state_to_wire(move.old) if move.old else "STATE_UNSPECIFIED"
    return pb.Move(old=old, new=state_to_wire(move.new), at=move.at, reason=move.reason)


def move_from_wire(wire: pb.Move) -> Move:
    old = None if wire.old == pb.STATE_UNSPECIFIED else state_from_wire(wire.old)
    return Move(old, state_from_wire(wire.new), wire.at, wire.reason)


def summary_to_wire(summary: RunSummary, most_bytes: int = LISTED_BYTES) -> pb.Summary:
    values = some_values(summary.last_values, most_bytes)
    return pb.Summary(
        events=summary.events,
        steps=summary.steps,
        episodes=summary.episodes,
        metrics=summary.metrics,
        rejects=summary.rejects,
        last_step=summary.last_step,
        last_return=summary.last_return,
        recent_returns=summary.recent_returns,
        steps_per_s=summary.steps_per_s,
        last_event_at=summary.last_event_at,
        last_values=values,
        values_left_out=summary.values_left_out + len(summary.last_values) - len(values),
        mean_return=summary.mean_return,
        mean_over=summary.mean_over,
        return_trace=summary.return_trace,
        eval_episodes=summary.eval_episodes,
        eval_mean=summary.eval_mean,
        eval_interval=summary.eval_interval,
        eval_over=summary.eval_over,
        env_steps=summary.env_steps,
        observed=[pb.Observed(what=what, by=by) for what, by in summary.observed],
        checkpoints=summary.checkpoints,
    )


def summary_from_wire(wire: pb.Summary) -> RunSummary:
    return RunSummary(
        events=wire.events,
        steps=wire.steps,
        episodes=wire.episodes,
        metrics=wire.metrics,
        rejects=wire.rejects,
        last_step=wire.last_step,
        last_return=wire.last_return if wire.HasField("last_return") else None,
        recent_returns=list(wire.recent_returns),
        steps_per_s=wire.steps_per_s,
        last_event_at=wire.last_event_at,
        last_values=dict(wire.last_values),
        values_left_out=wire.values_left_out,
        mean_return=wire.mean_return if wire.HasField("mean_return") else None,
        mean_over=wire.mean_over,
        return_trace=list(wire.return_trace),
        eval_episodes=wire.eval_episodes,
        eval_mean=wire.eval_mean if wire.HasField("eval_mean") else None,
        eval_interval=wire.eval_interval if wire.HasField("eval_interval") else None,
        eval_over=wire.eval_over,
        # The daemon of an older MOSAIC sends only the highest step number, which counts from 0.
        env_steps=wire.env_steps if wire.HasField("env_steps") else wire.last_step + 1,
        observed=[(each.what, each.by) for each in wire.observed],
        checkpoints=wire.checkpoints,
    )
