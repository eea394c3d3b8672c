"""Two small environments that need no package and are learned in a minute: images, and a memory.

CatchPixels-v0   84 x 84 pixels: a ball falls through six rows, a paddle moves left, stays or moves right.
RecallCue-v0     a vector: a cue is shown in the first step only, and the last action must name it.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

CATCH, RECALL = "CatchPixels-v0", "RecallCue-v0"


class CatchPixels(gymnasium.Env[Any, Any]):
    """+1 if the ball ends on the paddle, -1 if not. A random player catches one ball in seven."""

    CELLS = 7
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = spaces.Box(0, 255, (84, 84), np.uint8)
        self.action_space = spaces.Discrete(3)
        self.row = self.column = self.paddle = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.row, self.paddle = 0, self.CELLS // 2
        self.column = int(self.np_random.integers(self.CELLS))
        return self._picture(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.paddle = min(max(self.paddle + int(action) - 1, 0), self.CELLS - 1)
        self.row += 1
        is_over = self.row == self.CELLS - 1
        reward = 0.0 if not is_over else 1.0 if self.column == self.paddle else -1.0
        return self._picture(), reward, is_over, False, {}

    def render(self) -> Any:
        return np.repeat(self._picture()[..., None], 3, axis=-1)

    def _picture(self) -> Any:
        cells = np.zeros((self.CELLS, self.CELLS), np.uint8)
        cells[-1, self.paddle] = 128
        cells[self.row, self.column] = 255
        return np.kron(cells, np.ones((84 // self.CELLS, 84 // self.CELLS), np.uint8))


class RecallCue(gymnasium.Env[Any, Any]):
    """+1 if the action in the last step names the cue of the first, -1 if not. Without a memory the mean is 0."""

    LENGTH = 5

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.cue = self.steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.cue, self.steps = int(self.np_random.integers(2)), 0
        return np.array([2 * self.cue - 1, 0], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        is_over = self.steps == self.LENGTH
        reward = 0.0 if not is_over else 1.0 if int(action) == self.cue else -1.0
        # The second number announces the step in which the action counts.
        return np.array([0, self.steps == self.LENGTH - 1], np.float32), reward, is_over, False, {}


for name, kind in ((CATCH, "CatchPixels"), (RECALL, "RecallCue")):
    if name not in gymnasium.registry:
        gymnasium.register(name, entry_point=f"{__name__}:{kind}")
