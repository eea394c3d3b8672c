"""A checkpoint's policy and one environment."""

from typing import Any

import numpy as np
import torch
from mosaic_sdk.library import saving
from mosaic_sdk.library.evaluating import Played

from tianshou_worker import WORKER, checkpoint, model
from tianshou_worker.config import TianshouConfig
from tianshou_worker.envs import make_env


class Stage:
    """What `policy_path` names, with the settings of its training."""

    def __init__(self, config: TianshouConfig) -> None:
        self.found = saving.find(config, worker=WORKER)
        self.config = config.filled_from(self.found.settings)
        self.env = make_env(self.config)
        self._algorithm = model.create(self.config, self.env.observation_space, self.env.action_space)
        checkpoint.restore(self._algorithm, self.found)

    def act(self, observation: Any) -> Any:
        with torch.no_grad():
            action = self._algorithm.policy.compute_action(np.asarray(observation))
        space = self.env.action_space
        return action if isinstance(action, int) else np.asarray(action, space.dtype).reshape(space.shape)

    def play(self, seed: int) -> Played:
        torch.manual_seed(seed)
        observation, _ = self.env.reset(seed=seed)
        total, length = 0.0, 0
        while True:
            observation, reward, terminated, truncated, _ = self.env.step(self.act(observation))
            total, length = total + float(reward), length + 1
            if terminated or truncated:
                return Played(total, length, bool(terminated), bool(truncated))

    def close(self) -> None:
        self.env.close()
