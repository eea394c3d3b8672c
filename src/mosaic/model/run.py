"""What a run is: the config it was submitted with, the registry's record of it, and its live summary."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic.model.states import RunState


@dataclass(frozen=True)
class GpuRequest:
    requested: int = 0
    mandatory: bool = False  # wait in INIT for them; otherwise run without


@dataclass(frozen=True)
class ResourceRequest:
    """What a run needs beside GPUs; it waits in INIT until so much is free."""

    cpus: float = 1.0
    memory_mb: int = 0  # 0: not known


@dataclass(frozen=True)
class Lineage:
    """The run that another one was made from."""

    parent_run_id: str = ""
    relation: str = ""  # "resume" or "eval"; empty without a parent


@dataclass(frozen=True)
class Settings:
    """The worker's settings in force, defaults included."""

    values: Mapping[str, Any] = field(default_factory=dict)  # dotted keys: "extras.algo_params.learning_rate"
    note: str = ""  # why they were not checked; empty when the worker's schema was applied


@dataclass(frozen=True)
class Limits:
    """When to end a run that does not end by itself. None, and 0 of `spin_s`: never."""

    time_s: float | None = None  # wall time of the worker
    heartbeat_s: float = 300.0  # heartbeats came, then none for so long and no CPU used: hung
    spin_s: float = 1800.0  # heartbeats came, then no output at all for so long, whatever CPU it uses
    no_progress_s: float | None = None  # heartbeats come, their progress counter stands still
    quiet_s: float | None = None  # nothing at all came for so long
    grace_s: float = 10.0  # between SIGTERM and SIGKILL


@dataclass(frozen=True)
class WorkerSpec:
    """`metadata.worker` of a trainer config: what to start and with what."""

    module: str = ""  # python -m MODULE in the worker's environment …
    script: str = ""  # … or this file (exactly one of the two)
    name: str = ""  # which one, of several environments that have the module
    variant: str = ""
    arguments: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    use_grpc: bool = False
    grpc_target: str = ""
    worker_id: str = ""


@dataclass(frozen=True)
class RunConfig:
    """A trainer config that passed validation."""

    run_id: str
    name: str
    area: str  # runs, custom_scripts or evals
    worker_name: str  # what listings show: the catalog's name, or the script's file name
    worker: WorkerSpec
    gpus: GpuRequest = GpuRequest()
    limits: Limits = Limits()
    tags: tuple[str, ...] = ()
    total_steps: int | None = None  # for the progress bar, when the config tells
    idempotency_key: str = ""
    # Of the text as it was submitted, which `raw` no longer is: one idempotency key is one config.
    config_hash: str = field(default="", compare=False)
    resources: ResourceRequest = ResourceRequest()
    lineage: Lineage = Lineage()
    settings: Settings = field(default_factory=Settings)
    raw: Mapping[str, Any] = field(default_factory=dict)  # the config as it was submitted


@dataclass(frozen=True)
class Move:
    """One line of a run's history."""

    old: RunState | None  # None: the submit itself
    new: RunState
    at: float  # unix seconds
    reason: str = ""


@dataclass(frozen=True)
class RunRecord:
    """A row of the registry."""

    run_id: str
    name: str
    area: str
    worker_name: str
    state: RunState
    reason: str = ""
    attempt: int = 0
    created_at: float = 0.0
    updated_at: float = 0.0
    gpus: GpuRequest = GpuRequest()
    granted: tuple[str, ...] = ()  # GPU UUIDs held now
    limits: Limits = Limits()
    tags: tuple[str, ...] = ()
    total_steps: int | None = None
    cancel_requested: bool = False
    waiting_for: str = ""  # INIT: what it waits for
    held_by: str = ""  # how the process tree is held
    telemetry: str = ""  # "" is fine; else "draining 3 MB", "incomplete", "disk full …"
    resources: ResourceRequest = ResourceRequest()
    lineage: Lineage = Lineage()
    settings_note: str = ""  # why its settings were not checked; empty when they were
    revision: int = 0  # rises with every change of any run


@dataclass
class RunSummary:
    """What a listing shows of a run's telemetry; kept in memory while it lives, in the index afterwards."""

    events: int = 0  # = the last seq
    steps: int = 0  # stored step events; a worker need not tell every step it makes
    episodes: int = 0  # stored episode events, evaluation episodes included
    metrics: int = 0
    rejects: int = 0
    last_step: int = -1  # highest step number seen in a step, metric or heartbeat
    env_steps: int = 0  # environment steps made in training, as far as any line tells
    total_steps: int = 0  # as heartbeats tell it; 0: they do not
    last_return: float | None = None
    recent_returns: list[float] = field(default_factory=list)  # newest last, at most 60
    mean_return: float | None = None  # of the newest `mean_over` training episodes
    mean_over: int = 0
    return_trace: list[float] = field(default_factory=list)  # means over the whole run, oldest first, for a sparkline
    eval_episodes: int = 0  # of agent "eval", or of an evaluation run
    eval_mean: float | None = None  # of the newest evaluation; of a whole evaluation run
    eval_interval: float | None = None  # half the width of its 95 % confidence interval
    eval_over: int = 0  # how many episodes eval_mean is the mean of
    steps_per_s: float = 0.0
    last_event_at: float = 0.0  # unix seconds
    failed_message: str = ""  # error of a run_failed line
    last_values: dict[str, float] = field(default_factory=dict)  # newest value of every metric

    @property
    def training_episodes(self) -> int:
        return self.episodes - self.eval_episodes
