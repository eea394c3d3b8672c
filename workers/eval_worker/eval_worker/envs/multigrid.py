"""mosaic-multigrid as a PettingZoo parallel environment with agents `agent_0`, `agent_1` …

Its environments are Gymnasium's by name only: every method returns dictionaries by agent index.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from mosaic_sdk.operators.bare import Bare
from pettingzoo import ParallelEnv

MISSION = "mission"


class MultigridParallel(ParallelEnv):  # type: ignore[misc]  # PettingZoo has no types
    metadata: ClassVar = {"name": "mosaic_multigrid", "render_modes": ["rgb_array"]}

    def __init__(self, env: Any) -> None:
        self.env = env
        self.render_mode = env.unwrapped.render_mode
        self.possible_agents = [_name(agent.index) for agent in env.unwrapped.agents]
        self.agents: list[str] = []
        self._bare = Bare(env)

    @property
    def unwrapped(self) -> Any:
        return self.env.unwrapped

    @property
    def first_observation(self) -> Any:
        return _seen(self._bare.first)

    def observation_space(self, agent: str) -> Any:
        return self.env.observation_space[_index(agent)]

    def action_space(self, agent: str) -> Any:
        return self.env.action_space[_index(agent)]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._bare.forget()
        observations, infos = self.env.reset(seed=seed)
        self.agents = list(self.possible_agents)
        return _seen(observations), _by_name(infos)

    def step(self, actions: Mapping[str, Any]) -> Any:
        outcome = self.env.step({_index(agent): int(action) for agent, action in actions.items()})
        rewards, terminated, truncated, infos = (_by_name(part) for part in outcome[1:])
        self.agents = [agent for agent in self.agents if not (terminated[agent] or truncated[agent])]
        return _seen(outcome[0]), rewards, terminated, truncated, infos

    def render(self) -> Any:
        return self.env.render()

    def close(self) -> None:
        self.env.close()


def _name(index: Any) -> str:
    return f"agent_{int(index)}"


def _index(name: str) -> int:
    return int(name.rpartition("_")[2])


def _by_name(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {_name(index): value for index, value in values.items()}


def _seen(observations: Mapping[Any, Any]) -> dict[str, Any]:
    """Observations by name. A mission is a text here; the library's own is an array that prints as one."""
    return {
        agent: {**seen, MISSION: str(seen[MISSION])} if isinstance(seen, Mapping) and MISSION in seen else seen
        for agent, seen in _by_name(observations).items()
    }
