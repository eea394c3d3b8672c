"""--interactive: an environment and a policy, driven by commands over pipes (protocol: mosaic_sdk.interactive).

Without a policy_path the actions are random. The environment has the wrappers of the policy's training.
"""

from collections.abc import Mapping
from typing import Any

from mosaic_sdk.operators import spaces
from mosaic_sdk.operators.arrays import restore
from mosaic_sdk.operators.bare import Bare
from mosaic_sdk.operators.digest import observation_digest
from mosaic_sdk.player import Agent, AgentId, CommandError, Player, Request, Step

from stable_baselines3_worker.config import ATARI, StableBaselines3Config


class StableBaselines3Player(Player):
    """Plays one episode at a time. Created for the first command that needs it, because it imports torch."""

    def __init__(self, config: StableBaselines3Config) -> None:
        from stable_baselines3_worker import envs, play

        self._play, self._policy, self.config = play, None, config
        if config.policy_path:
            self.config, self.vec_env, self._policy, _ = play.load_stage(config)
        else:
            self.vec_env = play.SingleEnv(envs.make_env(config))
        self._is_atari = bool(config.policy_path) and envs.wrapper_of(self.config) == ATARI
        self._inner = self.vec_env.unwrapped
        self._env = self._inner.envs[0]
        self._bare = Bare(self._env)
        self._actor = self._new_actor()
        self._actors: dict[AgentId, Any] = {}
        self._observations: Any = None
        self._return = 0.0

    def describe(self) -> dict[str, Any]:
        policy = "checkpoint" if self._policy else "random"
        return {"env_id": self.config.env_id, "algo": self.config.algo, "policy": policy}

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Mapping[str, Any]:
        self._bare.forget()
        self._inner.seed(seed)
        self._inner.set_options(options)
        self._observations = self.vec_env.reset()
        self._actor.begin(seed)
        self._return = 0.0
        return {
            "observation_space": spaces.describe(self._env.observation_space),
            "action_space": spaces.describe(self._env.action_space),
            "first_observation": observation_digest(self._bare.first),
            "actions": self._bare.actions,
        }

    def step(self, action: Any) -> Step:
        masks = self._play.action_masks(self.vec_env) if self._actor.is_maskable else None
        if action is None:
            chosen = self._actor.act(self._observations, masks)[0]
        else:
            chosen = _as_action(action, self._env.action_space)
        self._observations, rewards, _, infos = self.vec_env.step([chosen])
        end = infos[0].get("episode")
        truncated = end is not None and bool(infos[0].get("TimeLimit.truncated"))
        success = {} if end is None or self._bare.success is None else {"success": self._bare.success}
        return Step(chosen, self._reward(rewards[0], end), end is not None and not truncated, truncated, success)

    def begin_agent(self, agent: Agent) -> Mapping[str, Any]:
        if self._is_atari or (self._policy is not None and self.config.frame_stack > 1):
            raise CommandError(
                "observation_space: the policy sees several frames of its environment, so it needs one of its own. "
                "Let the worker own it (owns_env: true)."
            )
        actions, observations = spaces.describe(self._bare.action_space), spaces.describe(self._bare.observation_space)
        spaces.require(agent, action_space=actions, observation_space=observations)
        self._actors[agent.agent_id] = self._new_actor()
        self._actors[agent.agent_id].begin(agent.seed)
        return {}

    def select_action(self, request: Request) -> Any:
        actor = self._actors.setdefault(request.agent_id, self._new_actor())
        if request.is_first:
            actor.begin(None)
        masks = None if request.action_mask is None else [request.action_mask]
        return actor.act(self._batch(request.observation), masks)[0]

    def close(self) -> None:
        self.vec_env.close()

    def _new_actor(self) -> Any:
        if self._policy is None:
            return self._play.RandomActor(self._env.action_space)
        return self._play.Actor(self._policy, self.config)

    def _reward(self, reward: float, end: Mapping[str, Any] | None) -> float:
        """The environment's own reward: AtariWrapper clips it."""
        if not self._is_atari:
            return float(reward)
        before, self._return = self._return, float(end["r"] if end else sum(self._env.get_wrapper_attr("rewards")))
        return self._return - before

    def _batch(self, given: Any) -> Any:
        """An observation of the environment without wrappers, as the policy sees it."""
        try:
            observation = restore(given, spaces.describe(self._bare.observation_space))
        except ValueError as error:
            raise CommandError(f"observation: {error}.") from None
        return self._play.seen(self.vec_env, observation)


def _as_action(given: Any, space: Any) -> Any:
    import numpy as np

    refused = CommandError(f"action: {given!r} is not an action of {space}.")
    try:
        action = int(given) if hasattr(space, "n") and not space.shape else np.asarray(given, space.dtype)
    except (TypeError, ValueError):
        raise refused from None
    if isinstance(given, bool) or (np.asarray(action) != np.asarray(given)).any() or not space.contains(action):
        raise refused
    return action
