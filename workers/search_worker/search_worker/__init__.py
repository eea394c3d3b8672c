"""Searches hyper-parameters with Optuna. The driver is a run itself; every trial is a run of another worker."""

from typing import Any


def get_worker_metadata() -> tuple[Any, Any]:
    """The worker's name and capabilities."""
    from importlib.metadata import version

    from mosaic_sdk import __version__
    from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata

    metadata = WorkerMetadata(
        name="Search Worker",
        version=__version__,
        description="Searches hyper-parameters with Optuna; every trial is a run of another worker.",
        author="MOSAIC",
        upstream_library="optuna",
        upstream_version=version("optuna"),
        license="MIT",
    )
    # It waits for its trials most of the time, and may be silent for as long as one of them takes.
    capabilities = WorkerCapabilities(
        worker_type="search", supports_checkpointing=True, estimated_memory_mb=256, spin_s=0.0
    )
    return metadata, capabilities


def get_worker_schema() -> dict[str, Any]:
    """The schema of its settings."""
    from search_worker.schema import make_schema

    return make_schema()
