"""Gymnasium 1.x: observations that are boxes, choices, or dicts of them; actions that are a box or a choice."""

from __future__ import annotations

from typing import Any

import numpy as np

from dreamer_worker.agent.spaces import Space, Spaces
from dreamer_worker.envs import Action, Obs, observe, resize, stretch


def make(
    name: str, seed: int | None = None, suite: str = "", size: tuple[int, int] = (64, 64), **options: Any
) -> Gymnasium:
    import gymnasium

    env = gymnasium.make(name, render_mode="rgb_array", **options)
    return Gymnasium(env, seed, size)


class Gymnasium:
    """Continuous actions are given in [-1, 1] and stretched to the env's bounds; images get the wanted size."""

    def __init__(self, env: Any, seed: int | None = None, size: tuple[int, int] = (64, 64)) -> None:
        self._env = env
        self._seed = seed
        self._size = (size[0], size[1])
        self._sensors = _sensors(env.observation_space)
        self.obs_space: Spaces = {key: _space_of(space, self._size) for key, space in self._sensors.items()}
        self.act_space: Spaces = {"action": _action_space(env.action_space)}

    def reset(self) -> Obs:
        seed, self._seed = self._seed, None  # once: every later episode goes on with the same generator
        sensed, _ = self._env.reset(seed=seed)
        return observe(self._read(sensed), first=True)

    def step(self, action: Action) -> Obs:
        sensed, reward, terminated, truncated, _ = self._env.step(self._stretch(action["action"]))
        return observe(self._read(sensed), reward, last=bool(terminated or truncated), terminal=bool(terminated))

    def render(self) -> np.ndarray | None:
        frame = self._env.render()
        return None if frame is None else np.asarray(frame)

    def close(self) -> None:
        self._env.close()

    def _read(self, sensed: Any) -> Obs:
        values = sensed if isinstance(sensed, dict) else {"image" if _is_image(self._only) else "vector": sensed}
        return {key: self._convert(values[key], key) for key in self.obs_space}

    @property
    def _only(self) -> Any:
        return next(iter(self._sensors.values()))

    def _convert(self, value: Any, key: str) -> np.ndarray:
        array, space = np.asarray(value), self.obs_space[key]
        if space.is_image:
            return resize(array[..., None] if array.ndim == 2 else array, self._size)
        if space.discrete:
            array = array - self._sensors[key].start  # choices may begin anywhere; the agent's begin at 0
        return array.astype(space.dtype).reshape(space.shape)

    def _stretch(self, action: Any) -> Any:
        space = self._env.action_space
        if self.act_space["action"].discrete:
            return int(action) + int(space.start)
        return stretch(action, space.low, space.high).astype(space.dtype)


def _sensors(space: Any) -> dict[str, Any]:
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        # A text (a mission in words) is no sensor that the agent could read.
        return {key: part for key, part in space.spaces.items() if not _is_text(part)}
    return {"image" if _is_image(space) else "vector": space}


def _is_text(space: Any) -> bool:
    return space.dtype is not None and space.dtype.kind == "U"


def _is_image(space: Any) -> bool:
    return getattr(space, "dtype", None) == np.uint8 and len(space.shape) in (2, 3)


def _space_of(space: Any, size: tuple[int, int]) -> Space:
    from gymnasium import spaces

    if _is_image(space):
        return Space("uint8", (*size, space.shape[2] if len(space.shape) == 3 else 1))
    if isinstance(space, spaces.Discrete):
        return Space("int32", (), 0, int(space.n))
    if isinstance(space, spaces.MultiBinary):
        return Space("float32", space.shape)
    if isinstance(space, spaces.Box | spaces.MultiDiscrete):
        return Space("float32", space.shape)
    raise ValueError(f"Observations that are {space} cannot be read. Wrap the env so that they are boxes.")


def _action_space(space: Any) -> Space:
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return Space("int32", (), 0, int(space.n))
    if isinstance(space, spaces.Box) and np.isfinite(space.low).all() and np.isfinite(space.high).all():
        return Space("float32", (int(np.prod(space.shape)),), -1, 1)
    raise ValueError(f"Actions that are {space} cannot be played. They must be a choice or a bounded box.")
