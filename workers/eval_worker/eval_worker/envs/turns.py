"""A PettingZoo environment whose agents act one after the other (AEC) as a Game."""

from collections.abc import Mapping
from typing import Any

from eval_worker.envs.game import Game, Outcome, split_mask, without_mask


class TurnGame(Game):
    def __init__(self, env: Any) -> None:
        self.env = env
        self.agents = list(env.possible_agents)
        self._first: Any = None
        self._seen: dict[str, tuple[Any, Any]] = {}  # observation and mask, of this step

    @property
    def turn(self) -> list[str]:
        return [self.env.agent_selection] if getattr(self.env, "agents", None) else []

    def action_space(self, agent: str) -> Any:
        return self.env.action_space(agent)

    def observation_space(self, agent: str) -> Any:
        return without_mask(self.env.observation_space(agent))

    def reset(self, seed: int | None) -> None:
        self._seen.clear()
        self.env.reset(seed=seed)
        self._remove_the_dead()
        self._first = {agent: self.env.observe(agent) for agent in self.env.agents}

    def first_observation(self) -> Any:
        return self._first

    def observation(self, agent: str) -> Any:
        return self._look(agent)[0]

    def info(self, agent: str) -> Mapping[str, Any]:
        return self.env.infos.get(agent, {})  # type: ignore[no-any-return]

    def mask(self, agent: str) -> Any:
        return self._look(agent)[1]

    def step(self, actions: Mapping[str, Any]) -> Outcome:
        env, actor = self.env, self.env.agent_selection
        before = dict(env._cumulative_rewards)
        env.step(actions[actor])
        # An agent's total restarts with its own action; for the others it grows.
        rewards = {
            agent: float(total) - (0.0 if agent == actor else float(before.get(agent, 0.0)))
            for agent, total in env._cumulative_rewards.items()
        }
        terminated = {agent: bool(flag) for agent, flag in env.terminations.items()}
        truncated = {agent: bool(flag) for agent, flag in env.truncations.items()}
        infos = {agent: dict(info) for agent, info in env.infos.items()}
        self._seen.clear()
        # The last observation of those who have ended: some games have none once an agent is removed.
        for agent in [agent for agent in env.agents if terminated.get(agent) or truncated.get(agent)]:
            self._look(agent)
        self._remove_the_dead()
        return Outcome(rewards, terminated, truncated, infos)

    def _look(self, agent: str) -> tuple[Any, Any]:
        if agent not in self._seen:
            self._seen[agent] = split_mask(self.env.observe(agent), self.info(agent))
        return self._seen[agent]

    def _remove_the_dead(self) -> None:
        env = self.env
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            env.step(None)
