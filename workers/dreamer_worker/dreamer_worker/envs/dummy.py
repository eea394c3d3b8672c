"""Envs that need no library: a tiny grid that can be learned in minutes, and senders of noise for tests.

dummy_grid     walk to the goal in a 4 × 4 grid: reward 1 there, episodes of at most 20 steps
dummy_image    64 × 64 pixels of a moving dot, 5 actions
dummy_cont     a vector, two continuous actions
dummy_memory   a side is shown, then nothing, then it is asked for: reward 1 for the right answer, 0.5 by chance
dummy_crash    raises at its third step
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dreamer_worker.agent.spaces import Space, Spaces
from dreamer_worker.envs import Action, Obs, observe
from dreamer_worker.envs.library import no_such_env


def make(name: str, seed: int | None = None, suite: str = "", length: int = 20, **options: Any) -> Any:
    kinds = {"grid": Walk, "image": Dot, "cont": Drift, "memory": Memory, "crash": Crash}
    if name not in kinds:
        raise no_such_env(f"dummy_{name}", [f"dummy_{kind}" for kind in kinds])
    return kinds[name](seed, length, **options)


class Walk:
    """One observation, the place as one number per cell; four actions. The best return is 1."""

    SIDE = 4

    def __init__(self, seed: int | None, length: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._length = length
        self._at = np.zeros(2, int)
        self._steps = 0
        self.obs_space: Spaces = {"place": Space("float32", (self.SIDE**2,))}
        self.act_space: Spaces = {"action": Space("int32", (), 0, 4)}

    def reset(self) -> Obs:
        self._at = np.zeros(2, int)
        self._steps = 0
        return observe(self._see(), first=True)

    def step(self, action: Action) -> Obs:
        move = [(0, 1), (1, 0), (0, -1), (-1, 0)][int(action["action"])]
        self._at = np.clip(self._at + move, 0, self.SIDE - 1)
        self._steps += 1
        won = bool((self._at == self.SIDE - 1).all())
        return observe(self._see(), float(won), last=won or self._steps >= self._length, terminal=won)

    def render(self) -> np.ndarray | None:
        picture = np.zeros((self.SIDE, self.SIDE, 3), np.uint8)
        picture[tuple(self._at)] = 255
        return picture.repeat(16, 0).repeat(16, 1)

    def close(self) -> None:
        pass

    def _see(self) -> Obs:
        place = np.zeros(self.SIDE**2, np.float32)
        place[self._at[0] * self.SIDE + self._at[1]] = 1
        return {"place": place}


class Dot(Walk):
    """The same with pixels, and an action that does nothing."""

    SIDE = 8

    def __init__(self, seed: int | None, length: int, size: tuple[int, int] = (64, 64)) -> None:
        super().__init__(seed, length)
        self._scale = size[0] // self.SIDE
        self.obs_space = {"image": Space("uint8", (*size, 3))}
        self.act_space = {"action": Space("int32", (), 0, 5)}

    def step(self, action: Action) -> Obs:
        if int(action["action"]) == 4:
            self._steps += 1
            return observe(self._see(), last=self._steps >= self._length)
        return super().step(action)

    def _see(self) -> Obs:
        picture = np.zeros((self.SIDE, self.SIDE, 3), np.uint8)
        picture[tuple(self._at)] = 255
        return {"image": picture.repeat(self._scale, 0).repeat(self._scale, 1)}


class Drift:
    """A point that its actions push; the reward is how near to the middle it is."""

    def __init__(self, seed: int | None, length: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._length = length
        self._at = np.zeros(2)
        self._steps = 0
        self.obs_space: Spaces = {"at": Space("float32", (2,))}
        self.act_space: Spaces = {"action": Space("float32", (2,), -1, 1)}

    def reset(self) -> Obs:
        self._at = self._rng.uniform(-1, 1, 2)
        self._steps = 0
        return observe({"at": self._at.astype(np.float32)}, first=True)

    def step(self, action: Action) -> Obs:
        self._at = np.clip(self._at + 0.1 * np.clip(action["action"], -1, 1), -1, 1)
        self._steps += 1
        reward = 1 - float(np.abs(self._at).mean())
        return observe({"at": self._at.astype(np.float32)}, reward, last=self._steps >= self._length)

    def render(self) -> np.ndarray | None:
        return None

    def close(self) -> None:
        pass


class Memory:
    """The side is seen in the first observation only; `length` steps later it is asked for, and the answer ends it."""

    def __init__(self, seed: int | None, length: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._length = length
        self._side = 0
        self._steps = 0
        self.obs_space: Spaces = {"side": Space("float32", (2,)), "asked": Space("float32", (1,))}
        self.act_space: Spaces = {"action": Space("int32", (), 0, 2)}

    def reset(self) -> Obs:
        self._side = int(self._rng.integers(2))
        self._steps = 0
        return observe(self._see(), first=True)

    def step(self, action: Action) -> Obs:
        self._steps += 1
        over = self._steps > self._length
        right = over and int(action["action"]) == self._side
        return observe(self._see(), float(right), last=over, terminal=over)

    def render(self) -> np.ndarray | None:
        return None

    def close(self) -> None:
        pass

    def _see(self) -> Obs:
        side = np.eye(2, dtype=np.float32)[self._side] * (self._steps == 0)
        return {"side": side, "asked": np.full(1, self._steps == self._length, np.float32)}


class Crash(Walk):
    def step(self, action: Action) -> Obs:
        if self._steps == 2:
            raise RuntimeError("dummy_crash raises at its third step")
        return super().step(action)
