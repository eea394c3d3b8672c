"""Ray RLlib under MOSAIC: its new API stack with torch, single- and multi-agent."""

from typing import Any

WORKER = "ray"
UPSTREAM_VERSION = "2.60.0"


def get_worker_metadata() -> tuple[Any, Any]:
    """The worker's description and capabilities."""
    from mosaic_sdk import __version__
    from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata

    metadata = WorkerMetadata(
        name="Ray Worker",
        version=__version__,
        description="Ray RLlib (new API stack, torch), with a Ray instance of its own where one is needed.",
        author="MOSAIC",
        license="MIT",
        upstream_library="ray[rllib]",
        upstream_version=UPSTREAM_VERSION,
    )
    capabilities = WorkerCapabilities(
        worker_type=WORKER,
        supported_paradigms=("sequential", "multi_agent"),
        env_families=("gymnasium", "pettingzoo", "mpe2"),
        action_spaces=("discrete", "continuous"),
        observation_spaces=("vector", "image"),
        max_agents=64,
        supports_checkpointing=True,
        requires_gpu=False,
        estimated_memory_mb=1024,
    )
    return metadata, capabilities


def get_worker_schema() -> dict[str, Any]:
    """The schema of its config, with the training parameters of every algorithm."""
    from ray_worker.schema import make_schema

    return make_schema()
