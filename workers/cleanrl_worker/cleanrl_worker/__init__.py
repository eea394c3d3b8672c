"""CleanRL under MOSAIC: runs its single-file scripts unmodified and observes them from outside."""

from typing import Any

WORKER = "cleanrl"
UPSTREAM_VERSION = "1.2.0"


def get_worker_metadata() -> tuple[Any, Any]:
    """The worker's description and capabilities."""
    from mosaic_sdk import __version__
    from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata

    metadata = WorkerMetadata(
        name="CleanRL Worker",
        version=__version__,
        description="CleanRL's single-file scripts, unmodified; ppo is MOSAIC's version of ppo.py.",
        author="MOSAIC",
        license="MIT",
        upstream_library="cleanrl",
        upstream_version=UPSTREAM_VERSION,
    )
    capabilities = WorkerCapabilities(
        worker_type=WORKER,
        supported_paradigms=("sequential",),
        env_families=("gymnasium", "atari", "procgen", "mujoco", "dm_control", "minigrid", "babyai"),
        action_spaces=("discrete", "continuous"),
        observation_spaces=("vector", "image"),
        max_agents=1,
        supports_checkpointing=True,
        requires_gpu=False,
        estimated_memory_mb=512,
    )
    return metadata, capabilities


def get_worker_schema() -> dict[str, Any]:
    """The schema of its config, with the hyperparameters of every script."""
    from cleanrl_worker.schema import make_schema

    return make_schema()
