"""Evaluates language models as agents in text games: BALROG's task set, as far as the package index has it."""

from typing import Any


def get_worker_metadata() -> tuple[Any, Any]:
    """The worker's name and capabilities."""
    from mosaic_sdk import __version__
    from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata

    metadata = WorkerMetadata(
        name="BALROG Worker",
        version=__version__,
        description="Language models as agents in text games: BabyAI, Crafter, TextWorld, MiniHack, NetHack.",
        author="MOSAIC",
        license="MIT",
    )
    capabilities = WorkerCapabilities(
        worker_type="balrog",
        supported_paradigms=("evaluation",),
        env_families=("babyai", "crafter", "textworld", "minihack", "nethack"),
        action_spaces=("discrete", "text"),
        observation_spaces=("text",),
        max_agents=1,
        supports_checkpointing=True,
        supports_pause_resume=True,
        estimated_memory_mb=512,
    )
    return metadata, capabilities


def get_worker_schema() -> dict[str, Any]:
    """The schema of its settings."""
    from balrog_worker.schema import make_schema

    return make_schema()
