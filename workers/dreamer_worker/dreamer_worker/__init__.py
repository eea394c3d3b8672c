"""DreamerV3: an agent in JAX, and the env, agent, replay and logger processes of a training run.

The agent process runs the actor and the learner as two threads around one agent.
"""

from typing import Any


def get_worker_metadata() -> tuple[Any, Any]:
    """The worker's description and capabilities."""
    from mosaic_sdk import __version__
    from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata

    metadata = WorkerMetadata(
        name="Dreamer Worker",
        version=__version__,
        description="DreamerV3: learns a world model and trains its policy inside it.",
        author="MOSAIC",
        license="MIT",
    )
    capabilities = WorkerCapabilities(
        worker_type="dreamer",
        supported_paradigms=("sequential",),
        env_families=("gymnasium", "crafter", "atari", "dmc", "minigrid"),
        action_spaces=("discrete", "continuous"),
        observation_spaces=("vector", "image", "dict"),
        max_agents=1,
        estimated_memory_mb=2048,
    )
    return metadata, capabilities


def get_worker_schema() -> dict[str, Any]:
    """The JSON Schema of its config."""
    from dreamer_worker.config import make_schema

    return make_schema()
