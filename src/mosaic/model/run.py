"""What a run is: the config it was submitted with, and its record in the registry. Its summary is in listed.py."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic.model.listed import LONGEST_NAME as LONGEST_NAME
from mosaic.model.listed import MOST_CURVES as MOST_CURVES
from mosaic.model.listed import MOST_LAST_VALUES as MOST_LAST_VALUES
from mosaic.model.listed import MOST_OBSERVED as MOST_OBSERVED
from mosaic.model.listed import UNNUMBERED as UNNUMBERED
from mosaic.model.listed import Move as Move
from mosaic.model.listed import RunSummary as RunSummary
from mosaic.model.states import RunState
from mosaic.model.task import Task


@dataclass(frozen=True)
class GpuRequest:
    """GPUs for a run; it sees them as `CUDA_VISIBLE_DEVICES`."""

    requested: int = 0  # how many
    mandatory: bool = False  # wait in INIT until they are free; otherwise run without


@dataclass(frozen=True)
class ResourceRequest:
    """What a run needs besides GPUs; it waits in INIT until that much is free."""

    cpus: float = 1.0  # 0.5 is valid
    memory_mb: int = 0  # 0: unknown


@dataclass(frozen=True)
class Lineage:
    """The run that another one was derived from."""

    parent_run_id: str = ""
    relation: str = ""  # "resume", "eval" or "part"; empty without a parent


@dataclass(frozen=True)
class Membership:
    """The experiment that a run belongs to, and what makes it differ from the experiment's other runs."""

    experiment: str = ""  # its name; empty: none
    axes: Mapping[str, Any] = field(default_factory=dict)  # dotted keys: {"extras.algo_params.learning_rate": 0.001}


@dataclass(frozen=True)
class Settings:
    """The worker's settings in force, defaults included."""

    values: Mapping[str, Any] = field(default_factory=dict)  # dotted keys: "extras.algo_params.learning_rate"
    note: str = ""  # why they were not checked; empty when the worker's schema was applied


@dataclass(frozen=True)
class Limits:
    """When to end a run that does not end on its own. None, and 0 for `spin_s`: never."""

    time_s: float | None = None  # wall time of the worker
    heartbeat_s: float = 300.0  # after the first heartbeat: none for this long and no CPU used
    spin_s: float = 1800.0  # after the first heartbeat: no output at all for this long, with or without CPU use
    no_progress_s: float | None = None  # heartbeats arrive, but their progress counter does not change
    quiet_s: float | None = None  # no output at all for this long
    grace_s: float = 10.0  # between SIGTERM and SIGKILL


@dataclass(frozen=True)
class WorkerSpec:
    """`metadata.worker` of a trainer config: what to start, and with which settings."""

    module: str = ""  # python -m MODULE in the worker's environment …
    script: str = ""  # … or this file (exactly one of the two)
    name: str = ""  # chooses one of several environments that have the module
    variant: str = ""  # of the worker's environment, such as jax; for a script the whole name, such as cleanrl@jax
    arguments: tuple[str, ...] = ()  # more arguments on its command line
    config: Mapping[str, Any] = field(default_factory=dict)  # the worker's settings, checked against its schema
    environment: Mapping[str, str] = field(default_factory=dict)  # environment variables of its process
    use_grpc: bool = False  # pass the daemon's TCP address, for a worker that calls the daemon itself
    grpc_target: str = ""  # may repeat that address; another one is an error
    worker_id: str = ""  # how the worker identifies itself; empty: worker-001
    commands: bool = False  # the worker reads commands, one JSON object per line, on its stdin (docs/howto/commands.md)
    python: str = ""  # the interpreter of a script or module that is not in an environment of MOSAIC
    cwd: str = ""  # its working directory; empty: the run's folder
    inputs: str = ""  # a folder whose files are linked into the run's folder, so that relative paths work there
    drives: bool = False  # it submits and cancels the other runs of its experiment, with a token for these calls alone
    observe: bool | None = None  # hear the libraries that it uses; None: a script yes, a worker if its metadata says so


@dataclass(frozen=True)
class Operator:
    """A decision maker of a run, started by the run's worker in the environment of another one."""

    kind: str  # rl, llm or worker
    worker: WorkerSpec = field(default_factory=WorkerSpec)  # what to start; no module: not resolved yet
    about: Mapping[str, Any] = field(default_factory=dict)  # worker, run_id, checkpoint, step, env_id, algo
    owns_env: bool = False  # it creates the environment itself; otherwise it only selects actions


@dataclass(frozen=True)
class Part:
    """A part of a run that is done by `count` runs of their own (ADR 54)."""

    name: str  # one of those that the worker's schema names
    count: int = 1
    on: str = ""  # where they run, as in a config: CLUSTER[:PARTITION] or local; empty: where the run itself is
    gpus: GpuRequest = GpuRequest()
    resources: ResourceRequest = ResourceRequest()


@dataclass(frozen=True)
class Role:
    """Which part of its parent a run is."""

    part: str
    index: int  # 0 … count - 1
    count: int
    number: int  # 1 for the first run of this index; each that replaces another has the next one
    address: str  # where the parent's worker takes it up

    @property
    def slot(self) -> tuple[str, int]:
        return self.part, self.index


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
    total_steps: int | None = None  # for the progress bar, when the config contains it
    idempotency_key: str = ""
    # Of the config as submitted, which `raw` no longer is: one idempotency key stands for one config.
    config_hash: str = field(default="", compare=False)
    resources: ResourceRequest = ResourceRequest()
    lineage: Lineage = Lineage()
    membership: Membership = field(default_factory=Membership)
    origin: str = ""  # where an imported run came from
    on: str = ""  # where to run it: empty for this machine, else CLUSTER or CLUSTER:PARTITION
    requeue_as_resume: int = 0  # how often its daemon may continue it, as a new run, after its cluster has ended it
    operators: Mapping[str, Operator] = field(default_factory=dict)  # by their names
    parts: tuple[Part, ...] = ()
    role: Role | None = None  # of a run that is a part
    settings: Settings = field(default_factory=Settings)
    raw: Mapping[str, Any] = field(default_factory=dict)  # the config document, completed by the submit


@dataclass(frozen=True)
class Ending:
    """How and when a run ended that another program recorded."""

    state: RunState = RunState.TERMINATED
    reason: str = ""
    created_at: float = 0.0  # unix seconds: when it began …
    updated_at: float = 0.0  # … and ended, according to its files


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
    telemetry: str = ""  # "": no problem; else "draining 3 MB", "incomplete", "disk full …"
    resources: ResourceRequest = ResourceRequest()
    lineage: Lineage = Lineage()
    settings_note: str = ""  # why its settings were not checked; empty when they were
    task: Task = field(default_factory=Task)
    revision: int = 0  # increases with every change of any run
    damage: str = ""  # what is wrong with its row; the dispatcher leaves such a run alone
    number: int = 0  # 1, 2, 3 … in the order of submission; never given twice
    membership: Membership = field(default_factory=Membership)
    note: str = ""  # what people wrote about it
    origin: str = ""  # where an imported run came from; empty if it ran here
    on: str = ""  # where it runs: empty for this machine, else CLUSTER or CLUSTER:PARTITION, such as slurm:gpu
    job: str = ""  # what its cluster calls it, as the launcher returned it
    node: str = ""  # the machine of the cluster that it runs or ran on
