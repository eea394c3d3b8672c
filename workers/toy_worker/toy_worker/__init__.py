"""A worker for tests: steps, episodes and metrics at a chosen rate, and misbehaviour on request."""

from typing import Any, Dict, Tuple


def get_worker_metadata() -> Tuple[Any, Any]:
    """The worker's name and capabilities."""
    # Imported here: a run needs neither, and starts faster without them.
    from mosaic_sdk import __version__
    from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata

    metadata = WorkerMetadata(
        name="Toy Worker",
        version=__version__,
        description="Pretends to learn, at a chosen rate, and misbehaves on request.",
        author="MOSAIC",
        license="MIT",
    )
    capabilities = WorkerCapabilities(
        worker_type="toy",
        supported_paradigms=("sequential",),
        env_families=("toy",),
        action_spaces=("discrete",),
        observation_spaces=("vector",),
        max_agents=64,
        estimated_memory_mb=32,
    )
    return metadata, capabilities


def get_worker_schema() -> Dict[str, Any]:
    """The schema of its settings."""
    from toy_worker.schema import make_schema

    return make_schema()
