"""mode=interactive: an environment and a policy, driven by commands over pipes (protocol: mosaic_sdk.interactive).

Without a policy_path the actions are random, and `ready` states that. Actions may be discrete or continuous.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mosaic_sdk import interactive
from mosaic_sdk.player import CommandError, Player, Request, Step

from cleanrl_worker import registry, runtime
from cleanrl_worker.config import SCRIPTS_SEED, CleanRLWorkerConfig
from cleanrl_worker.lanes import make_lanes, make_plain_lane

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

    @cached_property
    def stage(self) -> Stage:
        return make_stage(self._config)

    def describe(self) -> dict[str, Any]:
        config = self._config
        policy = CHECKPOINT if config.policy_path else RANDOM
        return {"env_id": config.env_id, "algo": config.algo, "policy": policy}

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
        seed = SCRIPTS_SEED if seed is None else seed
        self._observation = self.stage.lane.reset(seed, options)
        self.stage.policy.begin(seed)
        space = self.stage.lane.observation_space
        return {"observation_shape": list(space.shape), "action_space": _describe(self.stage.lane.action_space)}

    def step(self, action: Any) -> Step:
        lane = self.stage.lane
        chosen = (
            self.stage.policy.choose(self._observation) if action is None else _as_action(action, lane.action_space)
        )
        step = lane.step(chosen)
        self._observation = step.observation
        return Step(chosen, step.reward, step.terminated, step.truncated)

    def select_action(self, request: Request) -> Any:
        return self.stage.policy.choose(_as_observation(request.observation, self.stage.lane.observation_space))

    def close(self) -> None:
        if "stage" in vars(self):
            self.stage.lane.close()


class Trained:
    """A checkpoint's policy, for one episode after the other."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def begin(self, seed: int) -> None:
        import torch

        torch.manual_seed(seed)
        self._policy.forget(0)

    def choose(self, observation: Any) -> Any:
        return self._policy.act([observation], [0])[0]


class Random:
    """Random actions, uniformly distributed."""

    def __init__(self, space: Any) -> None:
        self._space = space

    def begin(self, seed: int) -> None:
        self._space.seed(seed)

    def choose(self, observation: Any) -> Any:
        return self._space.sample()


def make_stage(config: CleanRLWorkerConfig) -> Stage:
    """ConfigError or CheckpointError if the environment or the policy cannot be created."""
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


def _describe(space: Any) -> dict[str, Any]:
    about = {"type": type(space).__name__, "shape": list(space.shape)}
    return {**about, "n": int(space.n)} if hasattr(space, "n") else {**about, "low": space.low, "high": space.high}


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
