"""Interactive mode of a library's worker: one environment of Gymnasium's kind, and what acts in it.

    class AcmePlayer(EnvPlayer):
        def __init__(self, config):
            self.policy = acme.load(config.policy_path)
            super().__init__(config, acme.make_env(config))

        def begin(self, agent_id, seed): self.policy.forget()
        def act(self, observation, agent_id, mask): return self.policy(observation)

EnvPlayer itself acts at random. Nothing is imported but what the environment needs; numpy comes with it.
"""

from importlib import import_module
from typing import Any, Dict, Mapping, Optional, Tuple

from mosaic_sdk.operators import spaces
from mosaic_sdk.operators.arrays import restore
from mosaic_sdk.operators.bare import Bare
from mosaic_sdk.operators.digest import observation_digest
from mosaic_sdk.operators.space_words import require
from mosaic_sdk.player import Agent, AgentId, CommandError, Player, Request, Step

CHECKPOINT, RANDOM = "checkpoint", "random"


class EnvPlayer(Player):
    """Plays one episode at a time. Override `begin` and `act` for a policy."""

    policy_kind = RANDOM

    def __init__(self, config: Any, env: Any) -> None:
        """`env`: with the wrappers of the policy's training."""
        self.config, self.env = config, env
        self.bare = Bare(env)
        self._observation: Any = None

    # What a policy overrides.

    def begin(self, agent_id: AgentId, seed: Optional[int]) -> None:
        """The agent's next observation is the first of an episode. The seed is for actions that are sampled."""
        if seed is not None:
            self.env.action_space.seed(seed)

    def act(self, observation: Any, agent_id: AgentId, mask: Any) -> Any:
        """The action for an observation as the policy sees it."""
        return self.env.action_space.sample(mask=None if mask is None else _array(mask, "int8"))

    def seen(self, observation: Any) -> Any:
        """An observation of the bare environment as the policy sees it."""
        return observation

    def spaces_of(self, agent_id: AgentId) -> Tuple[Any, Any]:
        """The action space and the observation space of an agent whose environment is elsewhere."""
        return self.bare.action_space, self.bare.observation_space

    def start(self, seed: Optional[int], options: Optional[Dict[str, Any]]) -> Any:
        """Reset the environment; returns what the policy sees."""
        return self.env.reset(seed=seed, options=options)[0]

    def take(self, action: Any) -> Tuple[Any, float, bool, bool]:
        """Step the environment: what the policy sees, the reward, terminated, truncated."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        return observation, float(reward), bool(terminated), bool(truncated)

    def mask(self) -> Any:
        """The action mask of the environment now, if the policy uses one."""
        return None

    # The rest is done.

    def describe(self) -> Dict[str, Any]:
        return {"env_id": self.config.env_id, "algo": self.config.algo, "policy": self.policy_kind}

    def reset(self, seed: Optional[int], options: Optional[Dict[str, Any]]) -> Mapping[str, Any]:
        self.bare.forget()
        self._observation = self.start(seed, options or None)
        self.begin(None, seed)
        return ready_fields(self.env, self.bare)

    def step(self, action: Any) -> Step:
        if action is None:
            taken = self.act(self._observation, None, self.mask())
        else:
            taken = as_action(action, self.env.action_space)
        self._observation, reward, terminated, truncated = self.take(taken)
        return Step(taken, reward, terminated, truncated, success_fields(self.bare, terminated or truncated))

    def begin_agent(self, agent: Agent) -> Mapping[str, Any]:
        actions, observations = self.spaces_of(agent.agent_id)
        require(agent, action_space=spaces.describe(actions), observation_space=spaces.describe(observations))
        self.begin(agent.agent_id, agent.seed)
        return {}

    def select_action(self, request: Request) -> Any:
        _, observations = self.spaces_of(request.agent_id)
        if request.is_first:
            self.begin(request.agent_id, None)
        given = as_observation(request.observation, observations)
        return self.act(self.seen(given), request.agent_id, request.action_mask)

    def close(self) -> None:
        self.env.close()


def ready_fields(env: Any, bare: Bare) -> Dict[str, Any]:
    """What `ready` says about an environment."""
    return {
        "observation_space": spaces.describe(env.observation_space),
        "action_space": spaces.describe(env.action_space),
        "first_observation": observation_digest(bare.first),
        "actions": bare.actions,
    }


def success_fields(bare: Optional[Bare], is_last: bool) -> Dict[str, Any]:
    """Whether the task was done, at the end of an episode, if the environment says so."""
    return {"success": bare.success} if is_last and bare is not None and bare.success is not None else {}


def as_observation(given: Any, space: Any) -> Any:
    """An observation of a command as the environment would give it. CommandError if it does not fit."""
    try:
        return restore(given, spaces.describe(space))
    except ValueError as error:
        raise CommandError(f"observation: {error}.") from None


def as_action(given: Any, space: Any) -> Any:
    """An action of a command as the environment takes it. CommandError if it is not one of the space."""
    refused = CommandError(f"action: {given!r} is not an action of {space}.")
    try:
        action = int(given) if hasattr(space, "n") and not space.shape else _array(given, space.dtype)
    except (TypeError, ValueError):
        raise refused from None
    if isinstance(given, bool) or not _is_same(action, given) or not space.contains(action):
        raise refused
    return action


def _is_same(action: Any, given: Any) -> bool:
    """Equal but for the rounding to the space's dtype."""
    return bool(import_module("numpy").allclose(_array(action, None), _array(given, None)))


def _array(values: Any, dtype: Any) -> Any:
    return import_module("numpy").asarray(values, dtype)
