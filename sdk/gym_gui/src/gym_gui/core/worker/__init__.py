"""How a worker describes itself, reports, and lists its results."""

from mosaic_sdk.compat.artifacts import (
    ArtifactsMetadata,
    CheckpointMetadata,
    TensorBoardMetadata,
    WandBMetadata,
    WorkerAnalyticsManifest,
)
from mosaic_sdk.compat.telemetry import TelemetryEmitter
from mosaic_sdk.contract import WorkerCapabilities, WorkerConfig, WorkerMetadata, WorkerRuntime

__all__ = [
    "ArtifactsMetadata",
    "CheckpointMetadata",
    "TelemetryEmitter",
    "TensorBoardMetadata",
    "WandBMetadata",
    "WorkerAnalyticsManifest",
    "WorkerCapabilities",
    "WorkerConfig",
    "WorkerMetadata",
    "WorkerRuntime",
]
