"""XuanCe under MOSAIC: its single- and multi-agent algorithms, unmodified, trained, resumed, evaluated and played."""

from typing import Any

WORKER = "xuance"
UPSTREAM_VERSION = "1.4.4"


def get_worker_metadata() -> tuple[Any, Any]:
    """The worker's description and capabilities."""
    from mosaic_sdk import __version__
    from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata

    metadata = WorkerMetadata(
        name="XuanCe Worker",
        version=__version__,
        description="XuanCe's single- and multi-agent algorithms, unmodified.",
        author="MOSAIC",
        license="MIT",
        upstream_library="xuance",
        upstream_version=UPSTREAM_VERSION,
    )
    capabilities = WorkerCapabilities(
        worker_type=WORKER,
        supported_paradigms=("sequential", "simultaneous"),
        env_families=("gymnasium", "classic_control", "box2d", "mujoco", "mpe"),
        action_spaces=("discrete", "continuous"),
        observation_spaces=("vector", "image"),
        max_agents=16,
        supports_checkpointing=True,
        requires_gpu=False,
        estimated_memory_mb=700,
    )
    return metadata, capabilities


def get_worker_schema() -> dict[str, Any]:
    """The schema of its config, with the hyperparameters of every algorithm."""
    from xuance_worker.schema import make_schema

    return make_schema()
