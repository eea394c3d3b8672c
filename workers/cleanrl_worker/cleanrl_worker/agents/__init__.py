"""The two networks of our own PPO, and which of them fits an environment."""

from typing import Any

from cleanrl_worker.agents.minigrid import MinigridAgent, MinigridCNN
from cleanrl_worker.agents.mlp import MLPAgent

__all__ = ["MLPAgent", "MinigridAgent", "MinigridCNN", "make_agent"]


def make_agent(envs: Any) -> MinigridAgent | MLPAgent:
    """The agent for the observations of these environments, which `wrappers.observations` has shaped."""
    shape = tuple(envs.single_observation_space.shape)
    actions = int(envs.single_action_space.n)
    if shape == MinigridCNN.INPUT:
        return MinigridAgent(actions)
    if len(shape) == 1:
        return MLPAgent(shape[0], actions)
    raise ValueError(f"observations of shape {shape} fit neither MLPAgent (a vector) nor MinigridAgent (7, 7, 3)")
