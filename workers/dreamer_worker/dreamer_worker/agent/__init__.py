"""The DreamerV3 agent: numpy in, numpy out. It knows nothing of processes, envs or files."""

from typing import TYPE_CHECKING, Any

from dreamer_worker.agent.spaces import Space, Spaces

if TYPE_CHECKING:
    from dreamer_worker.agent.agent import Agent

__all__ = ["Space", "Spaces", "make_agent"]


def make_agent(obs_space: Spaces, act_space: Spaces, config: Any) -> "Agent":
    """An agent for these spaces. `config` is an AgentConfig or a plain dict of its settings."""
    # Imported here: env, replay and logger processes need the spaces, not JAX.
    from dreamer_worker.agent.agent import Agent
    from dreamer_worker.agent.config import AgentConfig

    if isinstance(config, dict):
        config = AgentConfig.from_dict(config)
    return Agent(obs_space, act_space, config)
