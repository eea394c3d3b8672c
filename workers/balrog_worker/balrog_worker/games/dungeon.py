"""What MiniHack and NetHack share: one NetHack process, its keys in words, its screen in words."""

import warnings
from typing import Any

from balrog_worker.actions import Actions
from balrog_worker.games.game import Game, View
from balrog_worker.games.keyboard import words_of
from balrog_worker.games.screen import describe, is_waiting, message

_MOST_PAGES = 20  # of one message
_ENTER = 13
_painter: Any = None


class Dungeon(Game):
    """Derived classes build `_env`, an environment of NLE, and choose `default` and `noop`."""

    def __init__(self, env: Any, max_steps: int) -> None:
        self._env = env
        self.max_steps = max_steps
        words = words_of(env.actions)
        self.actions = Actions({word: text for word, (_, text) in words.items()})
        self._keys = {word: index for word, (index, _) in words.items()}
        self._enter = next((index for index, key in enumerate(env.actions) if int(key) == _ENTER), None)
        self._last: Any = None
        self._steps = 0

    def reset(self, *, seed: int) -> tuple[View, dict[str, Any]]:
        self._env.seed(core=seed, disp=seed, reseed=False)
        self._last, _ = self._env.reset()
        self._steps, self.progress = 0, 0.0
        return self._read(self._last, 0.0, False, False, {})[0], {}

    def step(self, action: str) -> tuple[View, float, bool, bool, dict[str, Any]]:
        view, reward, terminated, truncated, info = self._read(*self._env.step(self._keys[action]))
        self._steps += 1
        self.judge(self._last, info)
        return view, reward, terminated, truncated or (not terminated and self._steps >= self.max_steps), {}

    def judge(self, observation: Any, info: dict[str, Any]) -> None:
        """Set `progress` after a step."""
        raise NotImplementedError

    def render(self) -> Any:
        return _paint(self._last["glyphs"])

    def close(self) -> None:
        self._env.close()

    def _read(
        self, observation: Any, reward: float, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[View, float, bool, bool, dict[str, Any]]:
        """The screen after all pages of a message were read."""
        messages, total = [message(observation)], float(reward)
        pages = 0
        while is_waiting(observation) and self._enter is not None and not (terminated or truncated):
            observation, reward, terminated, truncated, info = self._env.step(self._enter)
            messages, total, pages = [*messages, message(observation)], total + float(reward), pages + 1
            if pages >= _MOST_PAGES:
                break
        self._last = observation
        return describe(observation, messages), total, bool(terminated), bool(truncated), info


def _paint(glyphs: Any) -> Any:
    global _painter
    if _painter is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from minihack.tiles.glyph_mapper import GlyphMapper
        _painter = GlyphMapper()  # it reads some thousand tiles, and keeps nothing else
    return _painter.to_rgb(glyphs)
