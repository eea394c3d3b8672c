"""mode=interactive: an environment and a policy, driven by commands over pipes (protocol: mosaic_sdk.interactive).

Without a policy_path the actions are random, and `ready` states that. Actions may be discrete or continuous.
"""

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mosaic_sdk import interactive
from mosaic_sdk.config import ConfigError
from mosaic_sdk.operators import spaces
from mosaic_sdk.operators.arrays import restore
from mosaic_sdk.operators.digest import observation_digest
from mosaic_sdk.player import Agent, AgentId, CommandError, Player, Request, Step

from cleanrl_worker import registry, runtime
from cleanrl_worker.config import SCRIPTS_SEED, CleanRLWorkerConfig
from cleanrl_worker.lanes import make_lanes, make_plain_lane
from cleanrl_worker.wrapping import matches, unwrapped, wrapped

CHECKPOINT, RANDOM = "checkpoint", "random"


def serve(config: CleanRLWorkerConfig) -> int:
    """Answer commands until `stop` or the end of stdin; returns the exit code."""
    os.environ.update(runtime.environment(config, Path.cwd()))
    seed = SCRIPTS_SEED if config.seed is None else config.seed
    return interactive.serve(lambda: CleanRLPlayer(config), run_id=config.run_id, first_seed=seed)


@dataclass(frozen=True)
class Stage:
    """An environment and a policy. Creating them imports libraries, which takes seconds."""

    lane: Any
    policy: Any


class CleanRLPlayer(Player):
    """Plays one episode at a time. The stage is created for the first command that needs it."""

    def __init__(self, config: CleanRLWorkerConfig) -> None:
        self._config = config
        self._observation: Any = None
        self._agents: dict[AgentId, Agent] = {}

    @cached_property
    def stage(self) -> Stage:
        return make_stage(self._config)

    def describe(self) -> dict[str, Any]:
        config = self._config
        policy = CHECKPOINT if config.policy_path else RANDOM
        return {"env_id": config.env_id, "algo": config.algo, "policy": policy}

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
        seed, lane = SCRIPTS_SEED if seed is None else seed, self.stage.lane
        self._observation = lane.reset(seed, options)
        self.stage.policy.begin(seed)
        bare = getattr(lane, "bare", None)
        return {
            "observation_shape": list(lane.observation_space.shape),
            "observation_space": spaces.describe(lane.observation_space),
            "action_space": spaces.describe(lane.action_space),
            "first_observation": observation_digest(bare.first if bare else self._observation),
            # A wrapper with other actions may mean other things by the same numbers.
            "actions": bare.actions if bare and bare.action_space == lane.action_space else None,
        }

    def step(self, action: Any) -> Step:
        lane = self.stage.lane
        chosen = (
            self.stage.policy.choose(self._observation) if action is None else _as_action(action, lane.action_space)
        )
        step = lane.step(chosen)
        self._observation = step.observation
        return Step(chosen, step.reward, step.terminated, step.truncated, _success(lane) if step.is_last else {})

    def begin_agent(self, agent: Agent) -> Mapping[str, Any]:
        self._agents[agent.agent_id] = agent
        if agent.action_space or agent.observation_space:
            self._check_spaces(agent)
        return {}

    def select_action(self, request: Request) -> Any:
        agent = self._agents.setdefault(request.agent_id, Agent(request.agent_id))
        lane, policy, place = self.stage.lane, self.stage.policy, list(self._agents).index(request.agent_id)
        if request.is_first:
            policy.begin(SCRIPTS_SEED if agent.seed is None else agent.seed, place)
        if not self._is_bare(agent):
            return policy.choose(_as_observation(request.observation, lane.observation_space), place)
        observation = wrapped(lane.env, _restored(request.observation, lane.bare.observation_space))
        return unwrapped(lane.env, policy.choose(observation, place))

    def close(self) -> None:
        if "stage" in vars(self):
            self.stage.lane.close()

    def _check_spaces(self, agent: Agent) -> None:
        lane = self.stage.lane
        if self._is_bare(agent):
            wrapped(lane.env, lane.bare.observation_space.sample())  # refuses wrappers that cannot do this
        else:
            wanted = spaces.describe(lane.action_space), spaces.describe(lane.observation_space)
            spaces.require(agent, action_space=wanted[0], observation_space=wanted[1])

    def _is_bare(self, agent: Agent) -> bool:
        """Whether the agent's environment is ours without the wrappers."""
        bare = getattr(self.stage.lane, "bare", None)
        if bare is None or not agent.observation_space:
            return False
        return matches(bare.observation_space, agent.observation_space) and matches(
            bare.action_space, agent.action_space
        )


class Trained:
    """A checkpoint's policy, for one episode after the other."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def begin(self, seed: int, place: int = 0) -> None:
        import torch

        torch.manual_seed(seed)
        self._policy.forget(place)

    def choose(self, observation: Any, place: int = 0) -> Any:
        return self._policy.act([observation], [place])[0]


class Random:
    """Random actions, uniformly distributed."""

    def __init__(self, space: Any) -> None:
        self._space = space

    def begin(self, seed: int, place: int = 0) -> None:
        self._space.seed(seed)

    def choose(self, observation: Any, place: int = 0) -> Any:
        return self._space.sample()


def make_stage(config: CleanRLWorkerConfig) -> Stage:
    """ConfigError or CheckpointError if the environment or the policy cannot be created."""
    if config.env_kwargs:
        _pass_to_make(config)
    if not config.policy_path:
        lane = make_plain_lane(registry.find(config.algo, config.upstream_path), config.env_id)
        return Stage(lane, Random(lane.action_space))
    from cleanrl_worker.checkpoints import load_checkpoint
    from cleanrl_worker.policy import load_policy, load_script

    checkpoint = load_checkpoint(config.policy_path)
    checkpoint.require(config.algo, config.env_id)
    algorithm, script = load_script(config)
    lane = make_lanes(algorithm, script, config.env_id, 1, checkpoint)[0]
    device = "cuda" if config.cuda else "cpu"
    return Stage(lane, Trained(load_policy(checkpoint, script, lane, config.eval_deterministic, device)))


def _pass_to_make(config: CleanRLWorkerConfig) -> None:
    """Let gymnasium.make add the environment's arguments: the scripts' own make_env cannot take them."""
    algorithm = registry.find(config.algo, config.upstream_path)
    if algorithm.takes in (registry.PROCGEN, registry.ENVPOOL, registry.PLAYERS):
        raise ConfigError(f"extras.env_kwargs: {algorithm.name} does not create its environment with gymnasium.make.")
    import gymnasium

    make = gymnasium.make

    @functools.wraps(make)
    def make_with(*args: Any, **options: Any) -> Any:
        return make(*args, **{**config.env_kwargs, **options})

    gymnasium.make = make_with


def _success(lane: Any) -> dict[str, Any]:
    success = lane.bare.success if hasattr(lane, "bare") else None
    return {} if success is None else {"success": success}


def _restored(given: Any, space: Any) -> Any:
    try:
        return restore(given, spaces.describe(space))
    except ValueError as error:
        raise CommandError(f"observation: {error}.") from None


def _as_action(given: Any, space: Any) -> Any:
    import numpy as np

    refused = CommandError(f"action: {given!r} is not an action of {space}.")
    try:
        action = int(given) if hasattr(space, "n") else np.asarray(given, dtype=space.dtype).reshape(space.shape)
    except (TypeError, ValueError):
        raise refused from None
    if hasattr(space, "n") and (isinstance(given, bool) or action != given or not space.contains(action)):
        raise refused
    return action


def _as_observation(given: Any, space: Any) -> Any:
    import numpy as np

    try:
        return np.asarray(given, dtype=space.dtype).reshape(space.shape)
    except (TypeError, ValueError):
        raise CommandError(f"observation: must have the shape {list(space.shape)}.") from None
