"""Environments: Gymnasium's by their ID, PettingZoo's as pettingzoo/NAME and mpe2/NAME.

The networks of RLlib take vectors and images of 32-bit floats. Other observations are converted: Discrete, Dict and
Tuple are flattened to vectors, integers become floats. A board game's action mask is not part of what the policy sees:
an illegal move ends the game, as PettingZoo defines it.
"""

import importlib
import os
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from mosaic_sdk.config import ConfigError
from mosaic_sdk.fastlane import is_fastlane_enabled, maybe_wrap_env

from ray_worker.config import AEC, AUTO, RayWorkerConfig

_HOMES = {"pettingzoo": ("pettingzoo.classic", "pettingzoo.butterfly", "pettingzoo.sisl"), "mpe2": ("mpe2",)}
RGB = "rgb_array"


def is_multi_agent(env_id: str) -> bool:
    prefix, slash, _ = env_id.partition("/")
    return bool(slash) and prefix in _HOMES


def make_env(config: RayWorkerConfig) -> Any:
    """A gymnasium.Env, or a MultiAgentEnv of RLlib. ConfigError if it cannot be created."""
    # Without these, pygame looks for a screen and a sound card.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    return make_game(config) if is_multi_agent(config.env_id) else _make_single(config)


def _make_single(config: RayWorkerConfig) -> Any:
    try:
        env = gymnasium.make(config.env_id, **config.env_kwargs)  # shown by the SDK's import hook
    except Exception as error:
        raise ConfigError(f"env_id: {config.env_id} cannot be created: {_words(error)}") from error
    raw = env.observation_space
    if _is_plain(raw):
        return env
    return gymnasium.wrappers.TransformObservation(env, lambda observation: seen(observation, raw), seen_space(raw))


def make_game(config: RayWorkerConfig) -> Any:
    """A PettingZoo environment as RLlib takes it."""
    from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv, PettingZooEnv

    module = find_game(config.env_id)
    is_parallel = config.env_api != AEC and hasattr(module, "parallel_env")
    if config.env_api not in (AUTO, AEC) and not is_parallel:
        raise ConfigError(f"env_api: the agents of {config.env_id} act one after the other. Set env_api=aec.")
    create = module.parallel_env if is_parallel else module.env
    render = {"render_mode": RGB} if is_fastlane_enabled() else {}
    try:
        env = maybe_wrap_env(create(**{**render, **config.env_kwargs}))
    except Exception as error:
        raise ConfigError(f"env_id: {config.env_id} cannot be created: {_words(error)}") from error
    return _seeing(ParallelPettingZooEnv if is_parallel else PettingZooEnv)(env)


def find_game(env_id: str) -> Any:
    """The module of a PettingZoo environment. ConfigError if there is none."""
    prefix, _, name = env_id.partition("/")
    for home in _HOMES[prefix]:
        try:
            return importlib.import_module(f"{home}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{home}.{name}":
                raise ConfigError(f"env_id: {env_id} needs the package {error.name}, which is missing.") from None
        except ImportError as error:  # an old version of the game says which one there is
            raise ConfigError(f"env_id: {env_id} cannot be imported: {error}.") from None
    raise ConfigError(f"env_id: there is no environment {env_id} in {', '.join(_HOMES[prefix])}.")


def _seeing(wrapper: Any) -> Any:
    """RLlib's wrapper, with what the policies see: neither masks nor nested observations."""

    class Seen(wrapper):  # type: ignore[misc]
        def __init__(self, env: Any) -> None:
            super().__init__(env)
            self.possible_agents = list(env.possible_agents)
            self.raw = {agent: env.observation_space(agent) for agent in self.possible_agents}
            self.observation_spaces = {agent: seen_space(space) for agent, space in self.raw.items()}
            self.action_spaces = {agent: env.action_space(agent) for agent in self.possible_agents}
            self.observation_space = spaces.Dict(self.observation_spaces)
            self.action_space = spaces.Dict(self.action_spaces)

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            observations, infos = super().reset(seed=seed, options=options)
            return self._seen(observations), infos

        def step(self, actions: Any) -> Any:
            observations, *rest = super().step(actions)
            return self._seen(observations), *rest

        def _seen(self, observations: Mapping[str, Any]) -> dict[str, Any]:
            return {agent: seen(one, self.raw[agent]) for agent, one in observations.items()}

    return Seen


def mask_of(env: Any, agent: str) -> Any:
    """The action mask of an agent whose turn it is; None if the game has none."""
    inner = getattr(env, "env", None)
    if inner is None or not _has_mask(inner.observation_space(agent)):
        return None
    return inner.observe(agent)["action_mask"]


def seen_space(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """The space of what a policy sees."""
    inner = space["observation"] if isinstance(space, spaces.Dict) and _has_mask(space) else space
    if _is_plain(inner):
        return inner
    flat = inner if _is_image(inner) else spaces.flatten_space(inner)
    assert isinstance(flat, spaces.Box)
    return spaces.Box(flat.low.astype(np.float32), flat.high.astype(np.float32), dtype=np.float32)


def seen(observation: Any, space: spaces.Space[Any]) -> Any:
    """An observation of `space` as a policy sees it."""
    if isinstance(space, spaces.Dict) and _has_mask(space):
        observation, space = observation["observation"], space["observation"]
    flat = observation if _is_plain(space) or _is_image(space) else spaces.flatten(space, observation)
    return np.asarray(flat, np.float32)


def _has_mask(space: spaces.Space[Any]) -> bool:
    return isinstance(space, spaces.Dict) and set(space.spaces) == {"observation", "action_mask"}


def _is_plain(space: spaces.Space[Any]) -> bool:
    """What RLlib's networks take as it is: torch computes with 32-bit floats only."""
    is_vector = isinstance(space, spaces.Box) and len(space.shape) == 1
    return (is_vector or _is_image(space)) and space.dtype == np.float32


def _is_image(space: spaces.Space[Any]) -> bool:
    """Large enough for a convolutional network."""
    return isinstance(space, spaces.Box) and len(space.shape) == 3 and space.shape[0] > 9


def _words(error: Exception) -> str:
    text = str(error).strip().rstrip(".").partition("\n")[0]
    return f"{type(error).__name__}: {text}." if text else f"{type(error).__name__}."
