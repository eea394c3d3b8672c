"""--interactive: an environment and policies, driven by commands over pipes (protocol: mosaic_sdk.interactive).

Without a policy_path the actions are random. No Ray instance is started. In a multi-agent environment a `step` is a
step of all agents whose turn it is, and takes no action; `select_action` chooses for one agent, by its agent_id.
"""

from collections.abc import Mapping
from typing import Any

from mosaic_sdk.library.playing import CHECKPOINT, RANDOM, as_action, as_observation, ready_fields, success_fields
from mosaic_sdk.operators import spaces
from mosaic_sdk.operators.bare import Bare
from mosaic_sdk.player import Agent, CommandError, Player, Request, Step

from ray_worker import checkpoint
from ray_worker.config import RayWorkerConfig
from ray_worker.runtime import prepare_process


def make_player(config: RayWorkerConfig) -> Player:
    return RayPlayer(config)


class RayPlayer(Player):
    """Plays one episode at a time. Created for the first command that needs it, because it imports torch and RLlib."""

    def __init__(self, config: RayWorkerConfig) -> None:
        prepare_process(config)
        from ray_worker import envs, play

        self.config, self._policies, self._seen = config, None, envs.seen
        if config.policy_path:
            from ray_worker.policy import Policies

            found = checkpoint.find(config)
            self.config = config.filled_from(found.settings)
            self._policies = Policies(found, self.config)
        self._table = play.Table(envs.make_env(self.config))
        self._bare = Bare(self._table.env) if self._table.is_single else None

    def describe(self) -> dict[str, Any]:
        policy = CHECKPOINT if self._policies else RANDOM
        return {"env_id": self.config.env_id, "algo": self.config.algo, "policy": policy}

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Mapping[str, Any]:
        env = self._table.env
        if self._bare:
            self._bare.forget()
        self._table.reset(seed, options)
        self._begin(seed)
        if self._bare is None:
            return {"agents": list(env.possible_agents)}
        return ready_fields(env, self._bare)

    def step(self, action: Any) -> Step:
        if action is None:
            chosen = self._choose()
        elif self._table.is_single:
            chosen = {"": as_action(action, self._table.env.action_space)}
        else:
            raise CommandError("action: this environment has several agents; send step without an action.")
        reward = self._table.step(chosen)
        success = success_fields(self._bare, self._table.is_over)
        shown = chosen[""] if self._table.is_single else chosen
        return Step(shown, reward, self._table.terminated, self._table.truncated, success)

    def begin_agent(self, agent: Agent) -> Mapping[str, Any]:
        observation, action = self._spaces_of(agent.agent_id)
        spaces.require(agent, action_space=spaces.describe(action), observation_space=spaces.describe(observation))
        self._begin(agent.seed, self._name(agent.agent_id))
        return {}

    def select_action(self, request: Request) -> Any:
        name = self._name(request.agent_id)
        observation, action = self._spaces_of(request.agent_id)
        if self._policies is None:
            return action.sample()
        if request.is_first:
            self._policies.begin(None, name)
        given = as_observation(request.observation, observation)
        return self._policies.act(self._seen(given, observation), name, request.action_mask)

    def close(self) -> None:
        self._table.env.close()

    def _begin(self, seed: int | None, agent: str | None = None) -> None:
        if self._policies:
            self._policies.begin(seed, agent)
        elif seed is not None:
            for one in self._action_spaces().values():
                one.seed(seed)

    def _choose(self) -> dict[str, Any]:
        if self._policies:
            return self._table.choose(self._policies)
        return {agent: self._action_spaces()[agent].sample() for agent in self._table.observations}

    def _action_spaces(self) -> dict[str, Any]:
        env = self._table.env
        return {"": env.action_space} if self._table.is_single else env.action_spaces

    def _name(self, agent_id: Any) -> str:
        return "" if self._table.is_single else str(agent_id)

    def _spaces_of(self, agent_id: Any) -> tuple[Any, Any]:
        """The spaces of an agent without our wrappers; masks are sent apart from observations."""
        if self._bare:
            return self._bare.observation_space, self._bare.action_space
        name, env = self._name(agent_id), self._table.env
        if name not in env.raw:
            raise CommandError(f"agent_id: {self.config.env_id} has the agents {', '.join(env.raw)}, not {name!r}.")
        space = env.raw[name]
        parts = getattr(space, "spaces", {})
        return parts["observation"] if "action_mask" in parts else space, env.action_spaces[name]
