"""A Gymnasium environment as a Game with the one agent `agent_0`."""

from collections.abc import Mapping
from typing import Any

from mosaic_sdk.operators.bare import Bare

from eval_worker.envs.game import AGENT, Game, Outcome


class SingleGame(Game):
    def __init__(self, env: Any) -> None:
        self.env = env
        self.agents = [AGENT]
        self._observation: Any = None
        self._info: Mapping[str, Any] = {}
        self._is_over = True
        self._bare = Bare(env)

    @property
    def turn(self) -> list[str]:
        return [] if self._is_over else [AGENT]

    def action_space(self, agent: str) -> Any:
        return self.env.action_space

    def observation_space(self, agent: str) -> Any:
        return self.env.observation_space

    def reset(self, seed: int | None) -> None:
        self._bare.forget()
        self._observation, self._info = self.env.reset(seed=seed)
        self._is_over = False

    def first_observation(self) -> Any:
        return self._bare.first

    def observation(self, agent: str) -> Any:
        return self._observation

    def info(self, agent: str) -> Mapping[str, Any]:
        return self._info

    def step(self, actions: Mapping[str, Any]) -> Outcome:
        self._observation, reward, terminated, truncated, self._info = self.env.step(actions[AGENT])
        self._is_over = bool(terminated or truncated)
        return Outcome({AGENT: float(reward)}, {AGENT: bool(terminated)}, {AGENT: bool(truncated)}, {AGENT: self._info})
