"""Atari through ale_py itself.

    atari        96 × 96 gray, sticky actions 0.25, all 18 actions
    atari100k    64 × 64 colour, no sticky actions, the game's own actions

Both: 4 frames per action, the last two pooled, up to 30 no-ops at the start, 108,000 frames at most. A time limit is a
truncation, not a termination, so `is_terminal` is false there (true in the reference implementation).
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np

from dreamer_worker.agent.spaces import Space, Spaces
from dreamer_worker.envs import Action, Obs, observe, resize
from dreamer_worker.envs.library import BadEnv, library

KINDS: dict[str, dict[str, Any]] = {
    "atari": {"size": (96, 96), "gray": True, "sticky": 0.25, "all_actions": True},
    "atari100k": {"size": (64, 64), "gray": False, "sticky": 0.0, "all_actions": False},
}
REPEAT = 4
MAX_FRAMES = 108_000
MAX_NOOPS = 30


def make(name: str, seed: int | None = None, suite: str = "atari", **options: Any) -> Atari:
    return Atari(name, seed, **{**KINDS[suite], **options})


class Atari:
    def __init__(
        self, name: str, seed: int | None, size: tuple[int, int], gray: bool, sticky: float, all_actions: bool
    ) -> None:
        ale_py, roms = library("ale_py", "ale-py"), library("ale_py.roms", "ale-py")
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._ale = ale_py.ALEInterface()
        self._ale.setInt("random_seed", int(seed or 0) % (1 << 31))
        self._ale.setFloat("repeat_action_probability", sticky)
        path = roms.get_rom_path(name) if name in roms.get_all_rom_ids() else None
        if path is None:
            near = get_close_matches(name, roms.get_all_rom_ids(), n=3) or roms.get_all_rom_ids()[:6]
            raise BadEnv(
                f"env: there is no Atari game {name!r}. Games are named like ms_pacman; similar: {', '.join(near)}."
            )
        self._ale.loadROM(path)
        self._actions = self._ale.getLegalActionSet() if all_actions else self._ale.getMinimalActionSet()
        self._rng = np.random.default_rng(seed)
        self._size, self._gray = (size[0], size[1]), gray
        self._frames = 0
        self.obs_space: Spaces = {"image": Space("uint8", (*self._size, 1 if gray else 3))}
        self.act_space: Spaces = {"action": Space("int32", (), 0, len(self._actions))}

    def reset(self) -> Obs:
        self._ale.reset_game()
        self._frames = 0
        for _ in range(int(self._rng.integers(0, MAX_NOOPS + 1))):
            self._ale.act(0)
            if self._ale.game_over():
                self._ale.reset_game()
        return observe({"image": self._see(self._screen())}, first=True)

    def step(self, action: Action) -> Obs:
        reward, screens = 0.0, []
        for _ in range(REPEAT):
            reward += self._ale.act(self._actions[int(action["action"])])
            self._frames += 1
            screens.append(self._screen())
            if self._ale.game_over():
                break
        pooled = np.maximum(*screens[-2:]) if len(screens) > 1 else screens[0]
        over = self._ale.game_over()
        late = self._frames >= MAX_FRAMES
        return observe({"image": self._see(pooled)}, reward, last=over or late, terminal=over)

    def render(self) -> np.ndarray | None:
        return np.asarray(self._ale.getScreenRGB())

    def close(self) -> None:
        pass

    def _screen(self) -> np.ndarray:
        return np.asarray(self._ale.getScreenGrayscale()[..., None] if self._gray else self._ale.getScreenRGB())

    def _see(self, screen: np.ndarray) -> np.ndarray:
        return resize(screen, self._size)
