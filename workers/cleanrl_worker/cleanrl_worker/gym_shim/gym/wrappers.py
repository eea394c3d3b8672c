"""Gymnasium's wrappers. The one that every script steps through is as fast as gym 0.23's."""

import time
from typing import Any

import gymnasium.wrappers
from gymnasium.wrappers import *  # noqa: F403  # scripts import theirs from here
from numpy.typing import NDArray


class RecordEpisodeStatistics(gymnasium.wrappers.RecordEpisodeStatistics):  # type: ignore[no-redef]
    """Gymnasium's checks with numpy at each step whether its only env is done: a third of a CartPole step."""

    episode_returns: NDArray[Any]
    episode_lengths: NDArray[Any]

    def step(self, action: Any) -> Any:
        if self.is_vector_env:
            return super().step(action)  # type: ignore[no-untyped-call]
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.episode_returns += reward
        self.episode_lengths += 1
        if terminated or truncated:
            self._end(info)
        return observation, reward, terminated, truncated, info

    def _end(self, info: dict[str, Any]) -> None:
        took_s = (time.perf_counter() - self.episode_start_times).round(6)
        info["episode"] = {"r": self.episode_returns.copy(), "l": self.episode_lengths.copy(), "t": took_s}
        self.return_queue.extend(self.episode_returns)
        self.length_queue.extend(self.episode_lengths)
        self.episode_count += 1
        self.episode_returns[:] = 0
        self.episode_lengths[:] = 0
        self.episode_start_times[:] = time.perf_counter()
