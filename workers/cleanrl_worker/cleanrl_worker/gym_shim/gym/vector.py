"""gym 0.23's SyncVectorEnv over Gymnasium's envs."""

import weakref
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

_seeds: "weakref.WeakKeyDictionary[gymnasium.Env[Any, Any], Any]" = weakref.WeakKeyDictionary()


def remember_seed(env: "gymnasium.Env[Any, Any]", seed: Any) -> None:
    _seeds[env] = seed


class SyncVectorEnv:
    """Several envs, stepped one after the other. An env that is done is reset in the same step."""

    is_vector_env = True

    def __init__(self, env_fns: "list[Callable[[], gymnasium.Env[Any, Any]]]") -> None:
        self.envs = [make() for make in env_fns]
        self.num_envs = len(self.envs)
        self.metadata = self.envs[0].metadata
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._observations = create_empty_array(self.single_observation_space, self.num_envs, np.zeros)
        self._rewards = np.zeros(self.num_envs, np.float64)
        self._dones = np.zeros(self.num_envs, np.bool_)

    def reset(self) -> Any:
        self._dones[:] = False
        return self._batch([env.reset(seed=_seeds.pop(env, None))[0] for env in self.envs])

    def step(self, actions: Any) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        observations, infos = [], []
        for number, (env, action) in enumerate(zip(self.envs, iterate(self.action_space, actions), strict=True)):
            observation, self._rewards[number], terminated, truncated, info = env.step(action)
            self._dones[number] = terminated or truncated
            if terminated or truncated:
                info = {**_of_old(info), "terminal_observation": np.asarray(observation)}
                info["TimeLimit.truncated"] = bool(truncated and not terminated)
                # Both can be true at once, which gym 0.23 cannot express.
                info["terminated"], info["truncated"] = bool(terminated), bool(truncated)
                observation = env.reset()[0]
            observations.append(observation)
            infos.append(info)
        return self._batch(observations), np.copy(self._rewards), np.copy(self._dones), infos

    def close(self) -> None:
        for env in self.envs:
            env.close()

    def _batch(self, observations: list[Any]) -> Any:
        self._observations = concatenate(self.single_observation_space, observations, self._observations)
        return deepcopy(self._observations)


def _of_old(info: dict[str, Any]) -> dict[str, Any]:
    """RecordEpisodeStatistics returns arrays of length one where gym 0.23 returned numbers."""
    episode = info.get("episode")
    if not episode:
        return info
    return {**info, "episode": {name: np.asarray(value).item() for name, value in episode.items()}}
