"""--interactive: the toy environment step by step. Rewards depend on the seed and on the actions."""

from typing import Any, Dict, Mapping, Optional

from mosaic_sdk.player import CommandError, Player, Request, Step

from toy_worker.config import ToyConfig
from toy_worker.learning import ENV_ID, Noise

ACTIONS = 2


class ToyPlayer(Player):
    """An episode of `episode_length` steps. Action 1 is worth more; the policy is random."""

    def __init__(self, config: ToyConfig) -> None:
        self._length = config.episode_length
        self._noise = self._policy = Noise(config.seed or 0)
        self._steps = 0

    def describe(self) -> Dict[str, Any]:
        return {"env_id": ENV_ID, "policy": "random"}

    def reset(self, seed: Optional[int], options: Optional[Dict[str, Any]]) -> Mapping[str, Any]:
        self._noise, self._policy, self._steps = Noise(seed or 0), Noise((seed or 0) + 1), 0
        return {"observation_shape": [1], "action_space": {"type": "Discrete", "shape": [], "n": ACTIONS}}

    def step(self, action: Any) -> Step:
        taken = self._choose() if action is None else _checked(action)
        self._steps += 1
        return Step(taken, taken + 0.2 * self._noise.next(), self._steps == self._length, False)

    def init_agent(self, agent_id: Any, seed: Optional[int]) -> None:
        self._policy = Noise(seed or 0)

    def select_action(self, request: Request) -> int:
        mask = [1] * ACTIONS if request.action_mask is None else request.action_mask
        allowed = [action for action, is_allowed in enumerate(mask[:ACTIONS]) if is_allowed]
        if not allowed:
            raise CommandError("action_mask: must allow at least one of the actions.")
        return allowed[self._choose() % len(allowed)]

    def _choose(self) -> int:
        return int(self._policy.next() > 0)


def _checked(action: Any) -> int:
    if isinstance(action, bool) or action not in range(ACTIONS):
        raise CommandError(f"action: must be 0 or 1, not {action!r}.")
    return int(action)
