"""DeepMind Control: `dmc_walker_walk`, with its joints (`proprio`), its camera image, or both."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dreamer_worker.agent.spaces import Space, Spaces
from dreamer_worker.envs import Action, Obs, observe, stretch


def make(
    name: str,
    seed: int | None = None,
    suite: str = "",
    proprio: bool = True,
    image: bool = False,
    size: tuple[int, int] = (64, 64),
    repeat: int = 1,
) -> DmControl:
    return DmControl(name, seed, proprio, image, size, repeat)


class DmControl:
    def __init__(
        self, name: str, seed: int | None, proprio: bool, image: bool, size: tuple[int, int], repeat: int
    ) -> None:
        # Without a display; a GPU draws with egl where there is one.
        os.environ.setdefault("MUJOCO_GL", "egl" if image else "disable")
        from dm_control import suite

        domain, _, task = name.replace("ball_in_cup", "ballincup").partition("_")
        domain = domain.replace("ballincup", "ball_in_cup")
        self._env = suite.load(domain, task, task_kwargs={"random": seed})
        self._proprio, self._image, self._size, self._repeat = proprio, image, tuple(size), repeat
        self._camera = 2 if domain == "quadruped" else 0
        self._spec = self._env.action_spec()
        self.obs_space: Spaces = {}
        if proprio:
            shapes = self._env.observation_spec()
            self.obs_space |= {key: Space("float32", spec.shape or (1,)) for key, spec in shapes.items()}
        if image:
            self.obs_space["image"] = Space("uint8", (*self._size, 3))
        self.act_space: Spaces = {"action": Space("float32", self._spec.shape, -1, 1)}

    def reset(self) -> Obs:
        return observe(self._read(self._env.reset().observation), first=True)

    def step(self, action: Action) -> Obs:
        control = stretch(action["action"], self._spec.minimum, self._spec.maximum)
        reward = 0.0
        for _ in range(self._repeat):
            time = self._env.step(control)
            reward += time.reward or 0.0
            if time.last():
                break
        return observe(
            self._read(time.observation), reward, last=time.last(), terminal=time.last() and time.discount == 0
        )

    def render(self) -> np.ndarray | None:
        return self._env.physics.render(*self._size, camera_id=self._camera) if self._image else None

    def close(self) -> None:
        self._env.close()

    def _read(self, sensed: Any) -> Obs:
        sensors: Obs = {}
        if self._proprio:
            sensors |= {
                key: np.asarray(value, np.float32).reshape(self.obs_space[key].shape) for key, value in sensed.items()
            }
        if self._image:
            sensors["image"] = self.render()
        return sensors
