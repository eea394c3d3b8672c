"""--interactive: another program decides when a step is taken. The protocol is `mosaic_sdk.interactive`.

`select_action` remembers the episode so far; `reset`, `init_agent` or "is_first": true begin a new one. Each `agent_id`
has an episode of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from mosaic_sdk.interactive import CommandError, Player, Request, Step, serve
from mosaic_sdk.player import AgentId

from dreamer_worker.agent.spaces import Space
from dreamer_worker.config import DreamerConfig
from dreamer_worker.envs import observe
from dreamer_worker.evaluate import ALGO, Policy
from dreamer_worker.factories import make_env
from dreamer_worker.fastlane import Screen


class DreamerPlayer(Player):
    """One env and the policy of the checkpoint."""

    def __init__(self, config: DreamerConfig) -> None:
        self._config = config
        self._env: Any = None
        self._screen: Any = None
        self._open(config)
        self._policy = Policy(self._env, config)
        self._policies: dict[AgentId, Policy] = {}  # of agents whose env is elsewhere
        self._obs: dict[str, Any] = {}

    def describe(self) -> dict[str, Any]:
        config = self._config
        policy = "random" if config.random_agent else "checkpoint"
        about = {"env_id": config.env, "env": config.env, "algo": ALGO, "policy": policy}
        return {**about, "checkpoint_epoch": self._policy.epoch}

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Mapping[str, Any]:
        if seed is not None:
            self._open(self._config.replace(seed=seed))
        self._obs = self._env.reset()
        self._screen.note(self._obs)
        self._policies.clear()
        return {}

    def step(self, action: Any) -> Step:
        given = None if action is None else as_action(action, self._env.act_space)
        taken = self._policy.choose(self._obs)
        if given is not None:
            taken = given
            self._policy.took(taken)
        self._obs = obs = self._env.step(taken)
        self._screen.note(obs)
        ended, died = bool(obs["is_last"]), bool(obs["is_terminal"])
        return Step(plain_action(taken), float(obs["reward"]), died, ended and not died)

    def init_agent(self, agent_id: AgentId, seed: int | None) -> None:
        self._policies[agent_id] = Policy(self._env, self._config, self._policy.agent)

    def select_action(self, request: Request) -> Any:
        if request.agent_id not in self._policies:
            self.init_agent(request.agent_id, None)
        sensed = as_observation(request.observation, self._env.obs_space)
        obs = observe(sensed, request.reward, first=request.is_first)
        return plain_action(self._policies[request.agent_id].choose(obs))

    def close(self) -> None:
        for part in (self._screen, self._env):
            if part is not None:
                part.close()
        self._env = self._screen = None

    def _open(self, config: DreamerConfig) -> None:
        self.close()
        self._env = make_env(config, 0)
        self._screen = Screen(0, self._env.render)


def run_interactive(config: DreamerConfig) -> int:
    """Answer commands until `stop` or the end of stdin; returns the exit code."""
    config = config.resolved()
    return serve(lambda: DreamerPlayer(config), run_id=config.run_id)


def as_action(given: Any, spaces: Mapping[str, Space]) -> dict[str, np.ndarray]:
    """An action from a command, as the env takes it, or CommandError."""
    named = given if isinstance(given, dict) else {next(iter(spaces)): given}
    if named.keys() != spaces.keys():
        raise CommandError(f"action: it must name {', '.join(spaces)}.")
    return {key: _as_array("action", key, value, spaces[key]) for key, value in named.items()}


def as_observation(given: Any, spaces: Mapping[str, Space]) -> dict[str, np.ndarray]:
    """An observation from a command, as the agent takes it, or CommandError."""
    named = given if isinstance(given, dict) else {next(iter(spaces)): given}
    if missing := [key for key in spaces if key not in named]:
        raise CommandError(f"observation: {missing[0]} is missing. Send an object with: {', '.join(spaces)}.")
    return {key: _as_array("observation", key, named[key], space) for key, space in spaces.items()}


def _as_array(what: str, key: str, value: Any, space: Space) -> np.ndarray:
    what = what if key == what else f"{what}.{key}"
    try:
        array = np.asarray(value, np.float64).reshape(space.shape)
    except (TypeError, ValueError):
        kind = f"numbers of shape {list(space.shape)}" if space.shape else "a number"
        raise CommandError(f"{what}: it must be {kind}.") from None
    low, high = (0, space.classes - 1) if space.discrete and not space.is_image else (space.low, space.high)
    if low is not None and high is not None and not ((array >= low) & (array <= high)).all():
        raise CommandError(f"{what}: it must be between {low:g} and {high:g}, not {value!r}.")
    if space.discrete and (array != np.floor(array)).any():
        raise CommandError(f"{what}: it must be a whole number, not {value!r}.")
    return array.astype(space.dtype)


def plain_action(action: Mapping[str, Any]) -> Any:
    """The action of an env that takes a single one, else all of them by name."""
    return action["action"] if list(action) == ["action"] else dict(action)
