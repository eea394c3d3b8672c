"""--interactive: an environment and a policy, driven by commands over pipes (protocol: mosaic_sdk.interactive).

Without a policy_path the actions are random, and `ready` states that. A policy of several agents has no environment
here: the evaluation owns it, and asks for the action of each agent.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from mosaic_sdk import interactive
from mosaic_sdk.config import ConfigError
from mosaic_sdk.operators import spaces
from mosaic_sdk.operators.bare import Bare
from mosaic_sdk.operators.space_words import require
from mosaic_sdk.player import Agent, CommandError, Player, Request, Step

from xuance_worker import checkpoint, library
from xuance_worker.config import XuanceConfig
from xuance_worker.families import MPE

CHECKPOINT, RANDOM = "checkpoint", "random"


def serve(config: XuanceConfig) -> int:
    """Answer commands until `stop` or the end of stdin; returns the exit code."""
    return interactive.serve(lambda: XuancePlayer(config), run_id=config.run_id, first_seed=config.first_seed)


class XuancePlayer(Player):
    """Plays one episode at a time. Environment and policy are created for the first command that needs them."""

    def __init__(self, config: XuanceConfig) -> None:
        self._config = config
        self._observation: Any = None
        self._is_started = False
        if config.policy_path:
            known = checkpoint.about(config.policy_path)
            self._about = {"env_id": known.about.get("env_id"), "algo": known.about.get("algo"), "policy": CHECKPOINT}
        else:
            self._about = {"env_id": config.env_id, "algo": config.algo, "policy": RANDOM}

    @cached_property
    def stage(self) -> "Stage":
        self._is_started = True
        return TrainedStage(self._config) if self._config.policy_path else RandomStage(self._config)

    def describe(self) -> dict[str, Any]:
        return self._about

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Mapping[str, Any]:
        stage = self.stage
        stage.bare.forget()
        self._observation, _ = stage.env.reset(seed=seed, options=options or None)
        stage.begin(None, seed)
        return {
            "observation_shape": list(stage.env.observation_space.shape),
            "observation_space": spaces.describe(stage.env.observation_space),
            "action_space": spaces.describe(stage.env.action_space),
            "first_observation": stage.first_observation(),
            "actions": stage.bare.actions,
        }

    def step(self, action: Any) -> Step:
        stage = self.stage
        taken = (
            stage.act(self._observation, None, None) if action is None else as_action(action, stage.env.action_space)
        )
        self._observation, reward, terminated, truncated, _ = stage.env.step(taken)
        is_last = bool(terminated or truncated)
        success = {"success": stage.bare.success} if is_last and stage.bare.success is not None else {}
        return Step(taken, float(reward), bool(terminated), bool(truncated), success)

    def begin_agent(self, agent: Agent) -> Mapping[str, Any]:
        actions, observations = self.stage.spaces_of(agent.agent_id)
        require(agent, action_space=spaces.describe(actions), observation_space=spaces.describe(observations))
        self.stage.begin(agent.agent_id, agent.seed)
        return {}

    def select_action(self, request: Request) -> Any:
        actions, observations = self.stage.spaces_of(request.agent_id)
        if request.is_first:
            self.stage.begin(request.agent_id, None)
        observation = as_observation(request.observation, observations)
        return within(self.stage.act(observation, request.agent_id, request.action_mask), actions)

    def close(self) -> None:
        if self._is_started:
            self.stage.close()


class Stage:
    """An environment of one agent, and what acts in it."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._bare: Bare | None = None

    @property
    def env(self) -> Any:
        if self._env is None:
            raise CommandError("A policy of several agents has no environment here. Send init_agent and select_action.")
        return self._env

    @property
    def bare(self) -> Bare:
        self._bare = self._bare or Bare(self.env)
        return self._bare

    def first_observation(self) -> Any:
        from mosaic_sdk.operators.digest import observation_digest

        return observation_digest(self.bare.first)

    def spaces_of(self, agent_id: Any) -> tuple[Any, Any]:
        return self.env.action_space, self.env.observation_space

    def begin(self, agent_id: Any, seed: int | None) -> None:
        raise NotImplementedError

    def act(self, observation: Any, agent_id: Any, mask: Any) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        if self._env is not None:
            self._env.close()


class RandomStage(Stage):
    """Random actions, uniformly distributed."""

    def __init__(self, config: XuanceConfig) -> None:
        if config.family == MPE:
            raise ConfigError(f"extras.policy_path is missing: {config.env_id} has several agents; name their policy.")
        library.prepare_process()
        library.require_env(config)
        import gymnasium

        super().__init__(gymnasium.make(config.env_id, render_mode="rgb_array"))

    def begin(self, agent_id: Any, seed: int | None) -> None:
        if seed is not None:
            self.env.action_space.seed(seed)

    def act(self, observation: Any, agent_id: Any, mask: Any) -> Any:
        import numpy as np

        return self.env.action_space.sample(mask=None if mask is None else np.asarray(mask, np.int8))


class TrainedStage(Stage):
    """A checkpoint's policy, for one agent or for each of several."""

    def __init__(self, config: XuanceConfig) -> None:
        from xuance_worker.policy import Actor, load_policy

        saved, setup = load_policy(config)
        self._setup = setup
        self._actor = Actor(setup.agent, saved.config.algo)
        # XuanCe's adapter holds the environment itself, which takes seeds and options.
        super().__init__(None if self._actor.agent_ids else setup.envs.envs[0].env.env)

    def spaces_of(self, agent_id: Any) -> tuple[Any, Any]:
        if self._actor.agent_ids and agent_id not in self._actor.agent_ids:
            raise CommandError(
                f"agent_id: the policy has no agent {agent_id!r}. It has: {', '.join(self._actor.agent_ids)}."
            )
        return self._actor.spaces_of(agent_id)

    def begin(self, agent_id: Any, seed: int | None) -> None:
        if seed is not None:
            import torch

            torch.manual_seed(seed)  # for the algorithms that sample
        self._actor.begin(agent_id)

    def act(self, observation: Any, agent_id: Any, mask: Any) -> Any:
        return self._actor.act(as_observation(observation, self.spaces_of(agent_id)[1]), agent_id, mask)

    def close(self) -> None:
        self._setup.agent.finish()
        self._setup.envs.close()


def as_observation(given: Any, space: Any) -> Any:
    import numpy as np

    try:
        return np.asarray(given, dtype=space.dtype).reshape(space.shape)
    except (TypeError, ValueError):
        raise CommandError(f"observation: must have the shape {list(space.shape)}.") from None


def as_action(given: Any, space: Any) -> Any:
    import numpy as np

    refused = CommandError(f"action: {given!r} is not an action of {space}.")
    try:
        action = int(given) if hasattr(space, "n") else np.asarray(given, dtype=space.dtype).reshape(space.shape)
    except (TypeError, ValueError):
        raise refused from None
    if hasattr(space, "n") and (isinstance(given, bool) or action != given or not space.contains(action)):
        raise refused
    return action


def within(action: Any, space: Any) -> Any:
    """A continuous action inside its bounds, where XuanCe's policies need not stay."""
    import numpy as np

    return int(action) if hasattr(space, "n") else np.clip(action, space.low, space.high)
