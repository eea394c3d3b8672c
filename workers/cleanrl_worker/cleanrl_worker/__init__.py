"""CleanRL under MOSAIC: its single-file scripts, unmodified, observed at their own seams."""

from typing import Any

UPSTREAM_VERSION = "1.2.0"


def get_worker_metadata() -> tuple[Any, Any]:
    """Who the CleanRL worker is and what it can do."""
    from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata

    metadata = WorkerMetadata(
        name="CleanRL Worker",
        version="0.1.0",
        description="CleanRL's single-file scripts, unmodified; ppo is MOSAIC's version of ppo.py.",
        author="MOSAIC",
        license="MIT",
        upstream_library="cleanrl",
        upstream_version=UPSTREAM_VERSION,
    )
    capabilities = WorkerCapabilities(
        worker_type="cleanrl",
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
    """The keys of its config, with every script's own hyperparameters."""
    from cleanrl_worker.schema import make_schema

    return make_schema()
