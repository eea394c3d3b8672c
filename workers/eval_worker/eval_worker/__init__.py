"""Evaluates operators side by side on the same seeds: RL policies, LLMs, people, random and passive agents."""

from typing import Any


def get_worker_metadata() -> tuple[Any, Any]:
    """The worker's name and capabilities."""
    # Imported here: a run needs neither, and starts faster without them.
    from mosaic_sdk import __version__
    from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata

    metadata = WorkerMetadata(
        name="Evaluation Worker",
        version=__version__,
        description="Evaluates RL policies, LLMs, people and random agents side by side on the same seeds.",
        author="MOSAIC",
        license="MIT",
    )
    capabilities = WorkerCapabilities(
        worker_type="eval",
        supported_paradigms=("evaluation",),
        env_families=("gymnasium", "minigrid", "pettingzoo", "mpe2", "mosaic_multigrid"),
        action_spaces=("discrete", "continuous", "multi_discrete", "multi_binary"),
        observation_spaces=("vector", "image", "dict"),
        max_agents=64,
        supports_checkpointing=True,
        supports_pause_resume=True,
        estimated_memory_mb=512,
    )
    return metadata, capabilities


def get_worker_schema() -> dict[str, Any]:
    """The schema of its settings."""
    from eval_worker.schema import make_schema

    return make_schema()
