"""Tianshou under MOSAIC: its own trainers, with a collector and a logger that report."""

from typing import Any

WORKER = "tianshou"
UPSTREAM_VERSION = "2.0.1"


def get_worker_metadata() -> tuple[Any, Any]:
    """The worker's description and capabilities. Nothing heavy is imported here: MOSAIC asks often."""
    from mosaic_sdk import __version__
    from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata

    metadata = WorkerMetadata(
        name="Tianshou Worker",
        version=__version__,
        description="Algorithms of Tianshou.",
        author="MOSAIC",
        license="MIT",
        upstream_library="tianshou",
        upstream_version=UPSTREAM_VERSION,
    )
    capabilities = WorkerCapabilities(
        worker_type=WORKER,
        supported_paradigms=("sequential",),
        env_families=("gymnasium", "classic_control", "box2d"),
        action_spaces=("discrete", "continuous"),
        observation_spaces=("vector",),
        max_agents=1,
        supports_checkpointing=True,
        requires_gpu=False,
        estimated_memory_mb=700,
    )
    return metadata, capabilities


def get_worker_schema() -> dict[str, Any]:
    """The schema of its settings, with the hyperparameters of every algorithm."""
    from tianshou_worker.schema import make_schema

    return make_schema()
