"""--interactive: the toy environment step by step. Rewards depend on the seed and on the actions.

An observation is one number from -1 to 1. faults.py misbehaves, if the settings ask for it.
"""

from typing import Any, Dict, Mapping, Optional

from mosaic_sdk.operators import spaces
from mosaic_sdk.operators.digest import observation_digest
from mosaic_sdk.player import Agent, CommandError, Player, Request, Step

from toy_worker.checkpoint import load
from toy_worker.config import ToyConfig
from toy_worker.fastlane import show_picture
from toy_worker.faults import Faults
from toy_worker.learning import ENV_ID, Noise

ACTIONS = 2
ACTION_SPACE = {"type": "Discrete", "n": ACTIONS, "start": 0}
OBSERVATION_SPACE = {"type": "Box", "shape": [1], "dtype": "float32", "low": -1.0, "high": 1.0}


class ToyPlayer(Player):
    """An episode of `episode_length` steps. Action 1 is worth more.

    The policy is random without a checkpoint; the more skill a checkpoint has, the more often it takes action 1.
    """

    def __init__(self, config: ToyConfig, faults: Optional[Faults] = None) -> None:
        self._ignores_seed = config.ignore_seed
        self._faults = faults or Faults(config, answers=1)
        self._faults.at_start()
        self._length = config.episode_length
        self._skill = load(config.checkpoint)["skill"] if config.checkpoint else 0.0
        self._name = "checkpoint" if config.checkpoint else "random"
        self._noise = self._policy = Noise(config.seed or 0)
        self._steps = 0
        self._picture = show_picture(config) if config.paint else None

    def describe(self) -> Dict[str, Any]:
        return {"env_id": ENV_ID, "policy": self._name}

    def reset(self, seed: Optional[int], options: Optional[Dict[str, Any]]) -> Mapping[str, Any]:
        seed = 0 if self._ignores_seed else seed or 0
        self._noise, self._policy, self._steps = Noise(seed), Noise(seed + 1), 0
        if self._picture:
            self._picture.reset()
        first = [Noise(seed + 2).next()]
        about = {"observation_shape": [1], "observation_space": OBSERVATION_SPACE, "action_space": ACTION_SPACE}
        return {**about, "first_observation": observation_digest(first)}

    def step(self, action: Any) -> Step:
        self._faults.at_next_step()
        taken = self._choose() if action is None else _checked(action)
        self._steps += 1
        reward, is_last = taken + 0.2 * self._noise.next(), self._steps == self._length
        if self._picture:
            self._picture.step((reward, is_last))
        return Step(taken, reward, is_last, False)

    def begin_agent(self, agent: Agent) -> Mapping[str, Any]:
        spaces.require(agent, action_space=ACTION_SPACE, observation_space=OBSERVATION_SPACE)
        self._policy = Noise(agent.seed or 0)
        return {}

    def select_action(self, request: Request) -> int:
        self._faults.at_next_step()
        mask = [1] * ACTIONS if request.action_mask is None else request.action_mask
        allowed = [action for action, is_allowed in enumerate(mask[:ACTIONS]) if is_allowed]
        if not allowed:
            raise CommandError("action_mask: must allow at least one of the actions.")
        return self._faults.spoil(allowed[self._choose() % len(allowed)])

    def close(self) -> None:
        if self._picture:
            self._picture.close()

    def _choose(self) -> int:
        return int(self._policy.next() > -self._skill)


def _checked(action: Any) -> int:
    if isinstance(action, bool) or action not in range(ACTIONS):
        raise CommandError(f"action: must be 0 or 1, not {action!r}.")
    return int(action)
