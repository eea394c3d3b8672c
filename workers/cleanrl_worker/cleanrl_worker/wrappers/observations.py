"""Observations in a shape that our agents accept: a vector, or MiniGrid's 7 x 7 x 3 cells."""

from typing import Any

import gymnasium
from gymnasium import spaces
from mosaic_sdk.config import ConfigError

CELLS = (7, 7, 3)


def for_agent(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """`env` with observations for one of our agents; ConfigError if that is impossible."""
    space = env.observation_space
    image = space.spaces.get("image") if isinstance(space, spaces.Dict) else space
    if isinstance(image, spaces.Box) and image.shape == CELLS:
        # MiniGrid's. The mission is a string and the direction is visible: the agents only see the cells.
        return Cells(env) if isinstance(space, spaces.Dict) else env
    if isinstance(image, spaces.Box) and len(image.shape) >= 3:
        raise ConfigError(
            f"{_name(env)}: ppo accepts vectors and MiniGrid's 7x7x3 cells, not images of shape {image.shape}. "
            "Use an algorithm for images, such as ppo_atari."
        )
    if not space.is_np_flattenable:
        raise ConfigError(f"{_name(env)}: its observations ({space}) cannot be flattened to a vector, which ppo needs.")
    is_vector = isinstance(space, spaces.Box) and len(space.shape) == 1
    return env if is_vector else gymnasium.wrappers.FlattenObservation(env)


class Cells(gymnasium.ObservationWrapper[Any, Any, Any]):
    """The image in MiniGrid's observation, without the rest of it."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, spaces.Dict)
        self.observation_space = env.observation_space["image"]

    def observation(self, observation: Any) -> Any:
        return observation["image"]


def check_actions(env_id: str, space: Any) -> None:
    """ConfigError unless the actions are discrete."""
    if not isinstance(space, spaces.Discrete):
        raise ConfigError(
            f"{env_id}: ppo needs discrete actions, but its action space is {space}. "
            "Use ppo_continuous_action, sac_continuous_action or another algorithm for continuous actions."
        )


def _name(env: gymnasium.Env[Any, Any]) -> str:
    return env.spec.id if env.spec else type(env.unwrapped).__name__
