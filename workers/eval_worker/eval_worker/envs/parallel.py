"""A PettingZoo environment whose agents act at the same time as a Game."""

from collections.abc import Mapping
from typing import Any

from eval_worker.envs.game import Game, Outcome, split_mask, without_mask


class ParallelGame(Game):
    def __init__(self, env: Any) -> None:
        self.env = env
        self.agents = list(env.possible_agents)
        self._observations: dict[str, Any] = {}
        self._infos: Mapping[str, Mapping[str, Any]] = {}
        self._first: Any = None

    @property
    def turn(self) -> list[str]:
        return list(getattr(self.env, "agents", []) or [])

    def action_space(self, agent: str) -> Any:
        return self.env.action_space(agent)

    def observation_space(self, agent: str) -> Any:
        return without_mask(self.env.observation_space(agent))

    def reset(self, seed: int | None) -> None:
        observations, infos = self.env.reset(seed=seed)
        self._observations, self._infos = dict(observations), infos or {}
        self._first = getattr(self.env, "first_observation", None) or dict(observations)

    def first_observation(self) -> Any:
        return self._first

    def observation(self, agent: str) -> Any:
        return split_mask(self._observations.get(agent), self.info(agent))[0]

    def info(self, agent: str) -> Mapping[str, Any]:
        return self._infos.get(agent) or {}

    def mask(self, agent: str) -> Any:
        return split_mask(self._observations.get(agent), self.info(agent))[1]

    def step(self, actions: Mapping[str, Any]) -> Outcome:
        alive = self.turn
        observations, rewards, terminated, truncated, infos = self.env.step({agent: actions[agent] for agent in alive})
        # An agent that has just ended keeps its last observation, also if the library no longer returns one.
        self._observations.update(observations)
        self._infos = infos or {}
        return Outcome(
            {agent: float(rewards.get(agent, 0.0)) for agent in alive},
            {agent: bool(terminated.get(agent, agent not in self.turn)) for agent in alive},
            {agent: bool(truncated.get(agent, False)) for agent in alive},
            {agent: dict(self.info(agent)) for agent in alive},
        )
