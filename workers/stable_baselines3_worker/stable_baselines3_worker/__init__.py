"""Stable-Baselines3, SB3-Contrib and SBX under MOSAIC: the library's own `learn()`, with callbacks that report."""

from typing import Any

WORKER = "stable_baselines3"


def get_worker_metadata() -> tuple[Any, Any]:
    """The worker's description and capabilities. Nothing heavy is imported here: MOSAIC asks often."""
    from mosaic_sdk import __version__
    from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata

    metadata = WorkerMetadata(
        name="Stable-Baselines3 Worker",
        version=__version__,
        description="Algorithms of Stable-Baselines3, SB3-Contrib and SBX.",
        author="MOSAIC",
        license="MIT",
        upstream_library="stable-baselines3",
        upstream_version="2.9.2",
    )
    capabilities = WorkerCapabilities(
        worker_type=WORKER,
        supported_paradigms=("sequential",),
        env_families=("gymnasium", "atari", "mujoco", "box2d", "minigrid"),
        action_spaces=("discrete", "continuous", "multi_discrete", "multi_binary"),
        observation_spaces=("vector", "image", "dict"),
        max_agents=1,
        supports_checkpointing=True,
        requires_gpu=False,
        estimated_memory_mb=768,
    )
    return metadata, capabilities


def get_worker_schema() -> dict[str, Any]:
    """The schema of its settings, with the hyperparameters of every algorithm."""
    from stable_baselines3_worker.schema import make_schema

    return make_schema()
