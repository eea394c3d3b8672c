"""Gymnasium 1.x: any env whose observations and actions are arrays of a fixed size, nested to any depth."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator
from mosaic_sdk.operators.bare import Bare

from dreamer_worker.envs import Action, Obs, observe
from dreamer_worker.envs.controls import Controls
from dreamer_worker.envs.library import BadEnv
from dreamer_worker.envs.sensors import Sensors


def make(
    name: str, seed: int | None = None, suite: str = "", size: tuple[int, int] = (64, 64), **options: Any
) -> Gymnasium:
    """`name` is registered with Gymnasium, or `package:name` by the import of that package."""
    package, _, registered = name.rpartition(":")
    if package:
        _import(package, name)
    # Frames only if the env can render them.
    drawing = {"render_mode": "rgb_array"} if _draws(registered) else {}
    try:
        env = gymnasium.make(registered, **{**drawing, **options})
    except gymnasium.error.Error as error:  # no such name or version, or a library that it needs
        raise BadEnv(f"env: {error}") from error
    return Gymnasium(env, seed, size)


class Gymnasium:
    """Continuous actions are given in [-1, 1] and stretched to the env's bounds; images are resized."""

    def __init__(self, env: Any, seed: int | None = None, size: tuple[int, int] = (64, 64)) -> None:
        self._env = env
        self._seed = seed
        self._sensors = Sensors(env.observation_space, (size[0], size[1]))
        self._controls = Controls(env.action_space)
        self.bare = Bare(env)
        self.observation_space = env.observation_space
        self.obs_space = self._sensors.spaces
        self.act_space = self._controls.spaces

    def reset(self) -> Obs:
        seed, self._seed = self._seed, None  # once: later episodes continue with the same generator
        self.bare.forget()
        sensed, _ = self._env.reset(seed=seed)
        return observe(self._read(sensed), first=True)

    def step(self, action: Action) -> Obs:
        sensed, reward, terminated, truncated, _ = self._env.step(self._controls(action))
        ends = {"last": bool(terminated or truncated), "terminal": bool(terminated)}
        return observe(self._read(sensed), _number(reward), **ends)

    def sense(self, sensed: Any) -> Obs:
        """An observation of the same env in another process, as the agent's sensors."""
        return self._read(sensed)

    def play(self, action: Action) -> Any:
        """The agent's action as such an env takes it."""
        return self._controls(action)

    def render(self) -> np.ndarray | None:
        if getattr(self._env, "render_mode", None) != "rgb_array":
            return None
        frame = self._env.render()
        return None if frame is None else np.asarray(frame)

    def close(self) -> None:
        self._env.close()

    def _read(self, sensed: Any) -> Obs:
        return self._sensors(sensed)


def _import(package: str, name: str) -> None:
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package.partition(".")[0] and error.name != package:
            raise  # the package is there; one of its own imports is missing
        raise BadEnv(
            f"env: {name} comes from the package {package!r}, which is not installed. Install it into "
            "the worker's environment, or put its folder on PYTHONPATH."
        ) from error


def _draws(registered: str) -> bool:
    """Whether an env takes render_mode="rgb_array". For an unknown one `gymnasium.make` raises."""
    spec = gymnasium.registry.get(registered)
    if spec is None or spec.entry_point is None:
        return True
    creator = spec.entry_point if callable(spec.entry_point) else load_env_creator(spec.entry_point)
    metadata = getattr(creator, "metadata", None)
    if isinstance(metadata, dict) and "rgb_array" not in metadata.get("render_modes", ()):
        return False
    takes = inspect.signature(creator).parameters.values()
    return any(one.name == "render_mode" or one.kind is one.VAR_KEYWORD for one in takes)


def _number(reward: Any) -> float:
    found = np.asarray(reward, np.float32)
    if found.size != 1 or not np.isfinite(found).all():
        raise ValueError(f"The env's reward is {reward!r}, which is not a number. Fix the env, or wrap it.")
    return float(found.item())
