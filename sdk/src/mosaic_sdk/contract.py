"""The contract between a worker and MOSAIC: names, and how a worker describes itself."""

from dataclasses import dataclass
from typing import Any, Dict, Optional, Protocol, Tuple, runtime_checkable

from mosaic_sdk.names import (
    CHECKPOINT_LOADED,
    CHECKPOINT_SAVED,
    CONTRACT_VERSION,
    EPISODE,
    EVENT_KEY,
    HEARTBEAT,
    KIND_KEYS,
    KINDS,
    LIFECYCLE_EVENTS,
    METRIC,
    RUN_CANCELLED,
    RUN_COMPLETED,
    RUN_FAILED,
    RUN_STARTED,
    STEP,
    TELEMETRY_GAP,
    TelemetryEnv,
    VideoModes,
    WorkerEnv,
)

__all__ = [
    "CHECKPOINT_LOADED",
    "CHECKPOINT_SAVED",
    "CONTRACT_VERSION",
    "EPISODE",
    "EVENT_KEY",
    "HEARTBEAT",
    "KINDS",
    "KIND_KEYS",
    "LIFECYCLE_EVENTS",
    "METRIC",
    "RUN_CANCELLED",
    "RUN_COMPLETED",
    "RUN_FAILED",
    "RUN_STARTED",
    "STEP",
    "TELEMETRY_GAP",
    "TelemetryEnv",
    "VideoModes",
    "WorkerCapabilities",
    "WorkerConfig",
    "WorkerEnv",
    "WorkerMetadata",
    "WorkerRuntime",
]


@dataclass(frozen=True)
class WorkerMetadata:
    """The identity of a worker. Every field has a default."""

    name: str = ""
    version: str = "0.0.0"
    description: str = ""
    author: str = ""
    homepage: str = ""
    upstream_library: Optional[str] = None
    upstream_version: Optional[str] = None
    license: str = ""
    observe: bool = False  # report what its library logs, as for a script: see docs/howto/observe.md


@dataclass(frozen=True)
class WorkerCapabilities:
    """What a worker supports and requires."""

    worker_type: str = ""
    supported_paradigms: Tuple[str, ...] = ()
    env_families: Tuple[str, ...] = ()
    action_spaces: Tuple[str, ...] = ()
    observation_spaces: Tuple[str, ...] = ()
    max_agents: int = 1
    supports_self_play: bool = False
    supports_population: bool = False
    supports_checkpointing: bool = False
    supports_pause_resume: bool = False
    requires_gpu: bool = False
    gpu_memory_mb: Optional[int] = None
    cpu_cores: int = 1
    estimated_memory_mb: int = 512
    spin_s: Optional[float] = None  # it is stopped after so long without output; 0: never, None: MOSAIC's limit

    def supports_paradigm(self, paradigm: str) -> bool:
        return paradigm in self.supported_paradigms

    def supports_env_family(self, family: str) -> bool:
        return family in self.env_families

    def is_multi_agent(self) -> bool:
        return self.max_agents > 1


@runtime_checkable
class WorkerConfig(Protocol):
    """The interface of every worker's config."""

    run_id: str
    seed: Optional[int]

    def to_dict(self) -> Dict[str, Any]: ...

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "WorkerConfig": ...


@runtime_checkable
class WorkerRuntime(Protocol):
    """Runs a config to its end and returns a summary."""

    def run(self) -> Dict[str, Any]: ...
