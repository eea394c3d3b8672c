"""An operator that asks a language model for its actions, through any OpenAI-compatible endpoint."""

from typing import Any


def get_worker_metadata() -> tuple[Any, Any]:
    """The worker's name and capabilities."""
    from mosaic_sdk import __version__
    from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata

    metadata = WorkerMetadata(
        name="LLM Worker",
        version=__version__,
        description="Asks a language model for actions: vLLM, llama.cpp or a hosted API.",
        author="MOSAIC",
        license="MIT",
    )
    capabilities = WorkerCapabilities(
        worker_type="llm",
        supported_paradigms=("sequential", "parallel_simultaneous"),
        env_families=("minigrid", "babyai", "multigrid", "toy_text", "board_games", "atari"),
        action_spaces=("discrete", "multi_discrete", "continuous"),
        observation_spaces=("text", "image", "vector"),
        max_agents=64,
        estimated_memory_mb=128,
    )
    return metadata, capabilities


def get_worker_schema() -> dict[str, Any]:
    """The schema of its settings."""
    from llm_worker.schema import make_schema

    return make_schema()
