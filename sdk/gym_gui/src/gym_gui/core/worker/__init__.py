"""How a worker describes itself."""

from mosaic_sdk.contract import WorkerCapabilities, WorkerConfig, WorkerMetadata, WorkerRuntime

__all__ = ["WorkerCapabilities", "WorkerConfig", "WorkerMetadata", "WorkerRuntime"]
