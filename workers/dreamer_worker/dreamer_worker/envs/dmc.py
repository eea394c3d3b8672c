"""DeepMind Control: `dmc_walker_walk`, with its joints (`proprio`), its camera image, or both.

`draw` shows viewers frames of an env that learns from its joints alone.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dreamer_worker.agent.spaces import Space, Spaces
from dreamer_worker.envs import Action, Obs, observe, stretch
from dreamer_worker.envs.library import library, no_such_env

LOOK = (240, 320)  # frames for viewers


def make(
    name: str,
    seed: int | None = None,
    suite: str = "",
    proprio: bool = True,
    image: bool = False,
    size: tuple[int, int] = (64, 64),
    repeat: int = 1,
    draw: bool = False,
) -> DmControl:
    return DmControl(name, seed, proprio, image, size, repeat, draw)


class DmControl:
    def __init__(
        self,
        name: str,
        seed: int | None,
        proprio: bool,
        image: bool,
        size: tuple[int, int],
        repeat: int,
        draw: bool,
    ) -> None:
        # Without a display EGL renders. Where EGL is unavailable mujoco does not even load, so use it only to render.
        os.environ.setdefault("MUJOCO_GL", "egl" if image or draw else "disable")
        suite = library("dm_control.suite", "dm-control")
        domain, _, task = name.replace("ball_in_cup", "ballincup").partition("_")
        domain = domain.replace("ballincup", "ball_in_cup")
        if (domain, task) not in suite.ALL_TASKS:
            raise no_such_env(f"dmc_{name}", [f"dmc_{known}_{task}" for known, task in suite.ALL_TASKS])
        self._env = suite.load(domain, task, task_kwargs={"random": seed})
        self._proprio, self._image, self._size, self._repeat = proprio, image, (size[0], size[1]), repeat
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
        if os.environ.get("MUJOCO_GL") == "disable":
            raise RuntimeError("MuJoCo renders frames only with env_options.draw=true, which needs EGL.")
        return self._draw(LOOK)

    def close(self) -> None:
        self._env.close()

    def _read(self, sensed: Any) -> Obs:
        sensors: Obs = {}
        if self._proprio:
            sensors |= {
                key: np.asarray(value, np.float32).reshape(self.obs_space[key].shape) for key, value in sensed.items()
            }
        if self._image:
            sensors["image"] = self._draw(self._size)
        return sensors

    def _draw(self, size: tuple[int, int]) -> np.ndarray:
        return np.asarray(self._env.physics.render(*size, camera_id=self._camera))
