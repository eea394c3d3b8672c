"""A run as a client sees it: its record in the registry, its live summary, and values derived from both."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mosaic.model.listed import Move, RunSummary
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.convert import move_from_wire, state_from_wire, summary_from_wire


@dataclass(frozen=True)
class Run:
    run_id: str
    name: str
    area: str
    worker_name: str
    state: RunState
    reason: str
    attempt: int
    created_at: float  # unix seconds
    updated_at: float
    gpus_requested: int
    gpus_mandatory: bool
    granted: tuple[str, ...]  # GPU UUIDs held now
    tags: tuple[str, ...]
    total_steps: int | None
    time_limit_s: float | None
    cancel_requested: bool
    waiting_for: str  # INIT: what it waits for
    held_by: str  # how its process tree is held: "pid namespace", "subreaper (best effort)"
    telemetry: str  # "" if complete; else "draining 3 MB", "incomplete" …
    life: str  # "" if healthy; else "quiet 6 min" …
    revision: int
    run_dir: str
    summary: RunSummary
    cpus: float = 1.0
    memory_mb: int = 0  # 0: unknown
    parent_run_id: str = ""  # the run this one was made from
    relation: str = ""  # "resume" or "eval"
    settings_note: str = ""  # why its settings were not checked; "" if they were
    algo: str = ""  # algorithm, environment and seed, as far as the settings say
    env_id: str = ""
    seed: int | None = None
    experiment: str = ""  # the name of its experiment
    axes: dict[str, Any] = field(default_factory=dict)  # the settings that its experiment varies, with dotted keys
    note: str = ""
    origin: str = ""  # where an imported run came from; "" if it ran here
    on: str = ""  # where it runs: "" for the daemon's machine, else a cluster such as slurm:gpu
    node: str = ""  # the machine of the cluster that it runs or ran on
    job: str = ""  # its job there
    chosen: dict[str, Any] = field(default_factory=dict)  # list_runs with `columns` only: their values
    history: tuple[Move, ...] = ()  # get_run only
    config: dict[str, Any] | None = None  # get_run only; secrets redacted
    settings: dict[str, Any] | None = None  # get_run only: with defaults, under dotted keys; secrets redacted
    children: tuple[str, ...] = ()  # get_run only: the runs made from this one
    capabilities: dict[str, Any] | None = None  # get_run only: as its worker registered them

    @classmethod
    def from_wire(cls, info: pb.RunInfo) -> "Run":
        return cls(
            run_id=info.run_id,
            name=info.name,
            area=info.area,
            worker_name=info.worker_name,
            state=state_from_wire(info.state),
            reason=info.reason,
            attempt=info.attempt,
            created_at=info.created_at,
            updated_at=info.updated_at,
            gpus_requested=info.gpus_requested,
            gpus_mandatory=info.gpus_mandatory,
            granted=tuple(info.granted),
            tags=tuple(info.tags),
            total_steps=info.total_steps if info.HasField("total_steps") else None,
            time_limit_s=info.time_limit_s if info.HasField("time_limit_s") else None,
            cancel_requested=info.cancel_requested,
            waiting_for=info.waiting_for,
            held_by=info.held_by,
            telemetry=info.telemetry,
            life=info.life,
            revision=info.revision,
            run_dir=info.run_dir,
            summary=summary_from_wire(info.summary) if info.HasField("summary") else RunSummary(),
            cpus=info.cpus,
            memory_mb=info.memory_mb,
            parent_run_id=info.parent_run_id,
            relation=info.relation,
            settings_note=info.settings_note,
            algo=info.algo,
            env_id=info.env_id,
            seed=info.seed if info.HasField("seed") else None,
            experiment=info.experiment,
            axes=json.loads(info.axes_json) if info.axes_json else {},
            note=info.note,
            origin=info.origin,
            on=info.on,
            node=info.node,
            job=info.job,
            chosen=json.loads(info.chosen_settings_json) if info.chosen_settings_json else {},
            history=tuple(move_from_wire(move) for move in info.history),
            config=json.loads(info.config_json) if info.config_json else None,
            settings=json.loads(info.settings_json) if info.settings_json else None,
            children=tuple(info.children),
            capabilities=json.loads(info.capabilities_json) if info.capabilities_json else None,
        )

    @property
    def waiting(self) -> str:
        """ "waiting for 1 CPU: …", or empty."""
        return f"waiting for {self.waiting_for}" if self.waiting_for else ""

    @property
    def progress(self) -> float | None:
        """Between 0 and 1; None if the total number of steps is unknown.

        A finished run has progress 1 even if it made fewer steps: a trainer stops at the last whole batch.
        """
        if not self.total_steps:
            return None
        is_complete = self.state is RunState.TERMINATED and not self.origin
        return 1.0 if is_complete else min(1.0, self.summary.env_steps / self.total_steps)

    @property
    def eta_s(self) -> float | None:
        """Seconds until the last step at the present rate; None if unknown."""
        if self.state is not RunState.EXECUTING or not self.total_steps or self.summary.steps_per_s <= 0:
            return None
        return max(0.0, self.total_steps - self.summary.env_steps) / self.summary.steps_per_s

    @property
    def duration_s(self) -> float:
        """Seconds from submission until the end, or until now."""
        end = self.updated_at if self.state.is_over else time.time()
        return max(0.0, end - self.created_at)

    def to_dict(self) -> dict[str, Any]:
        """The object that `--json` prints: plain values, states as strings."""
        plain = asdict(self)
        plain["state"] = str(self.state)
        if not self.chosen:
            del plain["chosen"]
        plain["progress"] = self.progress
        plain["eta_s"] = self.eta_s
        plain["history"] = [
            {"old": str(move.old) if move.old else None, "new": str(move.new), "at": move.at, "reason": move.reason}
            for move in self.history
        ]
        return plain


@dataclass(frozen=True)
class RunList:
    """The result of list_runs, or one item of watch_runs."""

    runs: tuple[Run, ...]
    total: int  # how many runs match, without the limit
    deleted: tuple[str, ...] = ()  # watch_runs: ids of deleted runs
    is_whole: bool = True  # watch_runs: all runs that match, not only changes
    problem: str = ""  # watch_runs: why there is no connection now; the next item comes when a daemon answers again

    @classmethod
    def joined(cls, replies: Sequence[pb.ListRunsReply], is_whole: bool = True) -> "RunList":
        """The list that was sent in these replies, at least one."""
        runs = tuple(Run.from_wire(info) for reply in replies for info in reply.runs)
        deleted = tuple(run_id for reply in replies for run_id in reply.deleted)
        return cls(runs, replies[0].total, deleted, is_whole)
