"""dream=true: play inside the world model of a checkpoint instead of its env.

An episode begins with the env's own first observation. Every later one is what the model expects, so is the reward, and
the episode ends when, by the model, it has more likely ended than not, or after `dream_steps`. The agent or whoever
sends the actions of the interactive mode may act; neither is told that the world is a model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mosaic_sdk.config import ConfigError

from dreamer_worker.agent.spaces import Spaces
from dreamer_worker.config import DreamerConfig
from dreamer_worker.envs import Action, Env, Obs, observe, resize

SHOWN = 192  # pixels: the side of a frame
ENDS_BELOW = 0.5  # probability that the episode still goes on


class DreamEnv:
    """The env interface of a dream. `env` gives the first observation of each episode, and its keys."""

    def __init__(self, env: Env, agent: Any, steps: int, seed: int = 0) -> None:
        from dreamer_worker.agent.world import World

        self._env, self._length = env, steps
        self.obs_space: Spaces = env.obs_space
        self.act_space: Spaces = env.act_space
        self._world = World(agent, seed)
        self._steps, self._goes_on = 0, 1.0
        self._shown: dict[str, np.ndarray] = {}

    def reset(self) -> Obs:
        first = self._env.reset()
        self._steps, self._goes_on = 0, 1.0
        self._shown = self._world.begin(first).sensors
        return first

    def step(self, action: Action) -> Obs:
        moment = self._world.step(action)
        self._steps += 1
        self._shown = moment.sensors
        # A model that is not sure when an episode ends gives each of several steps a share of it.
        self._goes_on *= moment.goes_on
        died = self._goes_on < ENDS_BELOW
        # Keys that the model does not see keep the value zero.
        rest = {key: space.zeros() for key, space in self.obs_space.items() if key not in moment.sensors}
        last = died or self._steps >= self._length
        return observe({**rest, **moment.sensors}, moment.reward, last=last, terminal=died)

    def render(self) -> np.ndarray | None:
        """What the model expects to see: an image, or the numbers as bars."""
        images = [x for key, x in self._shown.items() if self.obs_space[key].is_image]
        if images:
            image = images[0] if images[0].shape[-1] == 3 else images[0][..., :1].repeat(3, -1)
            return resize(image, (SHOWN, SHOWN))
        numbers = [np.ravel(np.asarray(x, np.float32)) for x in self._shown.values()]
        return bars(np.concatenate(numbers)) if numbers else None

    def close(self) -> None:
        self._env.close()


def bars(numbers: np.ndarray, side: int = SHOWN) -> np.ndarray:
    """Numbers as bars up and down from the middle; large ones grow slowly."""
    picture = np.full((side, side, 3), 24, np.uint8)
    heights = (np.tanh(numbers) * (side // 2 - 2)).astype(int)
    edges = np.linspace(0, side, len(numbers) + 1).astype(int)
    middle = side // 2
    for height, left, right in zip(heights, edges[:-1], edges[1:], strict=True):
        top, bottom = sorted((middle, middle - height))
        picture[top : bottom + 1, left : max(left + 1, right - 1)] = (240, 180, 60) if height < 0 else (80, 170, 240)
    return picture


def dreamed(env: Env, agent: Any, config: DreamerConfig, seed: int = 0) -> Env:
    """`env`, or the dream of it if the config says so."""
    if not config.dream:
        return env
    if config.random_agent:
        raise ConfigError("dream: the random agent has no world model. Give the checkpoint of a trained one.")
    return DreamEnv(env, agent, config.dream_steps, seed)
