"""A Gymnasium env that fails once, in the first process that reaches step thirty: env `gym_flaky:Flaky-v0`."""

import os
import time
from pathlib import Path

import gymnasium
import numpy as np


class Flaky(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, failure, render_mode=None):
        self.failure = failure
        self.steps = 0

    def reset(self, seed=None, options=None):
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps == 30 and self.is_first():
            self.fail()
        return np.zeros(3, np.float32), 0.0, False, self.steps % 10 == 0, {}

    def is_first(self):
        try:
            Path(os.environ["FLAKY_MARK"]).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def fail(self):
        if self.failure == "hangs":
            time.sleep(10_000)
        raise RuntimeError("failed once, as requested")


gymnasium.register("Flaky-v0", "flaky:Flaky")
