"""Envs of every kind of space, registered with Gymnasium by importing this: `zoo:Zoo-v0` from this folder."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Zoo(gymnasium.Env):
    """Observations and actions of every kind; an action outside its space is an error."""

    observation_space = spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (3, 24, 32), np.uint8),
            "arm": spaces.Dict({"speed": spaces.Box(-np.inf, np.inf, (2,), np.float64), "held": spaces.MultiBinary(3)}),
            "dice": spaces.MultiDiscrete([6, 2, 6]),
            "mode": spaces.Discrete(4, start=-2),
            "pair": spaces.Tuple((spaces.Box(0, 9, (), np.int32), spaces.Discrete(2))),
            "action": spaces.Box(-1, 1, (2,)),
            "words": spaces.Text(9),
        }
    )
    action_space = spaces.Dict(
        {
            "walk": spaces.Discrete(3, start=5),
            "arms": spaces.Tuple((spaces.MultiDiscrete([3, 3]), spaces.MultiDiscrete([2, 4, 2], start=[1, 0, -1]))),
            "hold": spaces.MultiBinary((2, 2)),
            "turn": spaces.Dict({"wheel": spaces.Box(np.float32([-0.1, 0.3]), np.float32([0.7, 8.0]))}),
            "gear": spaces.Box(1, 6, (1,), np.int32),
            "none": spaces.Box(0, 1, (0,)),
        }
    )

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.steps += 1
        return self.observation_space.sample(), np.ones(1), self.steps >= 5, False, {}


class Desk(gymnasium.Env):
    """The observation is the answer: a colour, a shape, and how far to turn. One try; the best return is 3."""

    observation_space = spaces.Dict(
        {"colour": spaces.Discrete(3), "shape": spaces.Discrete(2), "far": spaces.Box(-20, 20)}
    )
    action_space = spaces.Dict({"pick": spaces.MultiDiscrete([3, 2]), "turn": spaces.Box(0, 8)})

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self._shown(), {}

    def step(self, action):
        wanted = self.wanted
        right = (action["pick"] == [wanted["colour"], wanted["shape"]]).sum()
        # Between 2 and 6: always turning by 4 is worth a half.
        near = max(0.0, 1 - abs(float(action["turn"][0] - (4 + wanted["far"][0] / 10))) / 2)
        return self._shown(), right + near, True, False, {}

    def _shown(self):
        self.wanted = self.observation_space.sample()
        return self.wanted


class Blind(Zoo):
    """Takes no render_mode at all."""

    def __init__(self):
        pass


class Painted(Zoo):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 9}  # noqa: RUF012

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def render(self):
        return np.full((4, 4, 3), 7, np.uint8)


gymnasium.register("Zoo-v0", Zoo)
gymnasium.register("Desk-v0", Desk)
gymnasium.register("Blind-v0", Blind)
gymnasium.register("Painted-v0", Painted)
gymnasium.register("Lambda-v0", lambda: Zoo())
