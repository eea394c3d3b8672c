"""The networks of MOSAIC's PPO, and which one each environment uses.

cleanrl   SeparateAgent   vectors: CleanRL's own network, the default
mlp       MLPAgent        vectors: actor and critic share their layers; the default in a curriculum
minigrid  MinigridAgent   MiniGrid's 7 x 7 x 3 cells
"""

from collections.abc import Iterable
from typing import Any

from mosaic_sdk.config import ConfigError

from cleanrl_worker.agents.head import DiscreteAgent
from cleanrl_worker.agents.minigrid import MinigridAgent, MinigridCNN
from cleanrl_worker.agents.mlp import MLPAgent
from cleanrl_worker.agents.separate import SeparateAgent

__all__ = ["CHOICES", "MLPAgent", "MinigridAgent", "MinigridCNN", "SeparateAgent", "agent_name", "make_agent"]

AUTO, CLEANRL, MLP, MINIGRID = CHOICES = ("auto", "cleanrl", "mlp", "minigrid")


def agent_name(requested: str, shape: Iterable[int], is_curriculum: bool = False) -> str:
    """The network for observations of this shape; ConfigError if the requested one does not accept them."""
    shape = tuple(shape)
    if len(shape) != 1 and shape != MinigridCNN.INPUT:
        raise ConfigError(f"ppo accepts vectors and MiniGrid's {MinigridCNN.INPUT} cells, not observations of {shape}.")
    is_vector = len(shape) == 1
    if requested == AUTO:
        return MINIGRID if not is_vector else MLP if is_curriculum else CLEANRL
    if (requested == MINIGRID) == is_vector:
        fitting = f"{CLEANRL} or {MLP}" if is_vector else MINIGRID
        raise ConfigError(f"agent: {requested} does not accept observations of shape {shape}. Use {fitting}, or auto.")
    return requested


def recognise(weights: Iterable[str]) -> str:
    """The network that has weights with these names. Checkpoints of earlier versions do not name it."""
    names = list(weights)
    if any(name.startswith("features.layers.") for name in names):
        return MINIGRID
    return MLP if any(name.startswith("features.") for name in names) else CLEANRL


def make_agent(envs: Any, agent: str = AUTO) -> DiscreteAgent:
    """The network for these environments, whose observations `wrappers.observations` has shaped."""
    shape = tuple(envs.single_observation_space.shape)
    actions = int(envs.single_action_space.n)
    name = agent_name(agent, shape)
    if name == MINIGRID:
        return MinigridAgent(actions)
    return (MLPAgent if name == MLP else SeparateAgent)(shape[0], actions)
