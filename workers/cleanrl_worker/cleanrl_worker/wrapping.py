"""The way through an environment's wrappers: a bare observation becomes the policy's, its action a bare one.

A policy whose environment is in another process gets that environment's own observations, without wrappers.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from mosaic_sdk.operators import spaces
from mosaic_sdk.player import CommandError

# Their observation depends on the steps before, which only an environment of our own takes.
_WITH_MEMORY = ("FrameStack", "FrameStackObservation", "TimeAwareObservation", "DelayObservation")


def layers(env: Any) -> Iterator[Any]:
    """The wrappers, outermost first, without the environment itself."""
    while "env" in vars(env):
        yield env
        env = env.env


def wrapped(env: Any, observation: Any) -> Any:
    """A bare observation as the wrappers of `env` show it to the policy; CommandError if that is impossible."""
    for layer in reversed(list(layers(env))):
        name = type(layer).__name__
        if name == "NormalizeObservation":
            observation = layer.normalize(np.asarray([observation]))[0]
        elif name in _WITH_MEMORY:
            raise _cannot(name)
        elif callable(getattr(type(layer), "observation", None)):
            observation = layer.observation(observation)
        elif layer.observation_space != layer.env.observation_space:
            raise _cannot(name)
    return np.asarray(observation)


def unwrapped(env: Any, action: Any) -> Any:
    """A policy's action as the wrappers of `env` pass it on."""
    for layer in layers(env):
        if callable(getattr(type(layer), "action", None)):
            action = layer.action(action)
    return action


def matches(space: Any, given: Any) -> bool:
    return not spaces.difference(spaces.describe(space), given)


def _cannot(name: str) -> CommandError:
    return CommandError(
        f"observation_space: the policy sees its environment through {name}, which needs an environment of its own. "
        "Let the worker own it (owns_env: true)."
    )
