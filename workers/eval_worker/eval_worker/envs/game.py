"""A Game: one environment with one or more agents, whichever library it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

AGENT = "agent_0"  # the agent of an environment that has only one


@dataclass(frozen=True)
class Outcome:
    """What one step did: for each agent that was alive before it, its reward, and whether its episode ended."""

    rewards: Mapping[str, float]
    terminated: Mapping[str, bool]
    truncated: Mapping[str, bool]
    infos: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Game:
    """One environment. Its promises:

    1. `reset` with the same seed leads to the same episode, for the same actions.
    2. `agents` never changes; `turn` lists those that must act now, and is empty once the episode is over.
    3. Agents whose episode has ended are removed without anyone's action.
    """

    env: Any  # the library's, with its wrappers
    agents: list[str]

    @property
    def turn(self) -> list[str]:
        raise NotImplementedError

    @property
    def is_multi_agent(self) -> bool:
        return self.agents != [AGENT]

    @property
    def unwrapped(self) -> Any:
        """The library's own object, without wrappers."""
        return self.env.unwrapped

    @property
    def can_render(self) -> bool:
        return getattr(self.env, "render_mode", None) == "rgb_array"

    def action_space(self, agent: str) -> Any:
        raise NotImplementedError

    def observation_space(self, agent: str) -> Any:
        raise NotImplementedError

    def reset(self, seed: int | None) -> None:
        raise NotImplementedError

    def first_observation(self) -> Any:
        """What the unwrapped environment returned from the last reset."""
        raise NotImplementedError

    def observation(self, agent: str) -> Any:
        raise NotImplementedError

    def info(self, agent: str) -> Mapping[str, Any]:
        raise NotImplementedError

    def mask(self, agent: str) -> Any:
        """A 0 or 1 for each action, as an array; None: all are allowed.

        Only PettingZoo's masks say what is legal. Gymnasium's (Taxi) are a hint and stay in the info: a policy that was
        trained without them takes the other actions, too.
        """
        return None

    def step(self, actions: Mapping[str, Any]) -> Outcome:
        """Take one action for each agent of `turn`."""
        raise NotImplementedError

    def render(self) -> Any:
        """A picture (height × width × 3); None if there is none."""
        return self.env.render() if self.can_render else None

    def close(self) -> None:
        self.env.close()


MASK, OBSERVATION = "action_mask", "observation"


def split_mask(observation: Any, info: Mapping[str, Any]) -> tuple[Any, Any]:
    """The observation and the mask. PettingZoo's board games put both into one dictionary."""
    if isinstance(observation, Mapping) and MASK in observation:
        rest = {key: part for key, part in observation.items() if key != MASK}
        return (rest[OBSERVATION] if rest.keys() == {OBSERVATION} else rest), observation[MASK]
    return observation, info.get(MASK)


def without_mask(space: Any) -> Any:
    """The space of what split_mask returns."""
    parts = getattr(space, "spaces", None)
    if not isinstance(parts, Mapping) or MASK not in parts:
        return space
    rest = {key: part for key, part in parts.items() if key != MASK}
    return rest[OBSERVATION] if rest.keys() == {OBSERVATION} else type(space)(rest)
