"""Operators without a policy: chance, and one that does nothing."""

import random
from typing import Any, Mapping, Optional

from mosaic_sdk.operators import spaces
from mosaic_sdk.operators.operator import Agent, StepResult
from mosaic_sdk.player import CommandError

_NO_OP = ("noop", "no-op", "no_op", "nop", "stay", "still", "wait", "pass", "nothing", "none", "done")


class Random:
    """Uniformly random actions; the same name, seed and agent give the same ones."""

    feedback = False

    def __init__(self, agent: Agent, name: str = "random") -> None:
        self._space = _action_space(agent)
        self._key = (name, agent.agent_id)
        self._rng = random.Random()
        self.reset(agent.seed or 0)

    def reset(self, seed: int) -> None:
        name, agent_id = self._key
        self._rng = random.Random(f"{name}:{seed}:{agent_id}")

    def select_action(self, obs: Any, info: Optional[Mapping[str, Any]] = None) -> Any:
        try:
            return spaces.sample(self._space, self._rng, (info or {}).get("action_mask"))
        except spaces.SpaceError as error:
            raise CommandError(str(error)) from None

    def on_step(self, result: StepResult) -> None:
        pass

    def close(self) -> None:
        pass


class Passive:
    """The action that does nothing, as far as one can tell: by its name, else the smallest."""

    feedback = False

    def __init__(self, agent: Agent) -> None:
        self._space = _action_space(agent)
        self._action = _no_op(agent, self._space)

    def reset(self, seed: int) -> None:
        pass

    def select_action(self, obs: Any, info: Optional[Mapping[str, Any]] = None) -> Any:
        mask = (info or {}).get("action_mask")
        if mask is None or not spaces.illegal(self._space, self._action, mask):
            return self._action
        try:
            return spaces.first_allowed(self._space, mask)
        except spaces.SpaceError as error:
            raise CommandError(str(error)) from None

    def on_step(self, result: StepResult) -> None:
        pass

    def close(self) -> None:
        pass


def _action_space(agent: Agent) -> Mapping[str, Any]:
    if agent.action_space is None:
        raise CommandError("init_agent: action_space is missing.")
    return agent.action_space


def _no_op(agent: Agent, space: Mapping[str, Any]) -> Any:
    named = {str(action.get("name", "")).strip().lower(): action.get("value") for action in agent.actions or ()}
    return next((named[name] for name in _NO_OP if name in named), spaces.neutral(space))
